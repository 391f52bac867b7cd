"""The log as a table: how fast Spark, Flight and others read it, and Spark writes to a broker."""
