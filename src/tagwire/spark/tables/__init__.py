"""The tables that `tagwire land` fills: plain Parquet files, Delta."""
