"""The literature: what was published about content-based publish/subscribe, as code that runs beside the product's.

    matching       the published matching algorithms, behind the protocol of `tamis.matching`
    topk           ranked subscriptions at one central service, by where events are matched
    experiments    the published experiments, run again and judged (`tamis lab`)

This package is a plug-in: it imports `tamis`, and is imported by name when somebody asks for what is in it
(`tamis.literature`). `Matcher("atree")` is all that it takes.
"""

import tamis.compilation  # noqa: F401 - where kernels are kept, before there is one
