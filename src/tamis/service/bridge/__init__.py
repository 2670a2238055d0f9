"""How do tables and the log of a broker become each other? A bridge between Arrow and the service.

`address` says where a broker is and who asks, `connection` asks it, `reading` makes tables of its events, `writing`
makes events of rows, and `arriving` gives its events to one process, batch by batch. Spark's part stands on these
(`tamis.spark.sources`). Unlike the clients, these modules need Arrow.
"""
