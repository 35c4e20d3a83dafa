"""The pipeline on Spark: data sources in `source`, `segments` and `captures`, sinks in `sink`, their use in `jobs`.

Nothing here imports PySpark or pyarrow by itself; without PySpark nothing here can be imported, and the error says what
to install.
"""

from importlib.util import find_spec

from tagwire.extras import MissingExtraError

if find_spec("pyspark") is None:
    raise MissingExtraError("pyspark", "spark")
