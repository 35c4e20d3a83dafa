"""What is done with the data sources: each job is a function over a SparkSession, and a command."""
