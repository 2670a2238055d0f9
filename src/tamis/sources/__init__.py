"""Where do events come from, and where do matches go?

From and to files, standard input and output, streams of NATS, and webhooks: what a single process does there, and what
the workers of Spark do just the same. `tables` reads and writes Parquet, JSON lines and CSV as Spark does; `jetstream`
talks to NATS, `posting` to a webhook; `nats_sink` and `webhook` say how rows become messages and requests, with names
that stay the same when they come twice. Spark's own formats over them are in `tamis.spark.sources`.
"""
