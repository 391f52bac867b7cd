"""What a Kafka client sees as topics: streams and views, and who may read them."""
