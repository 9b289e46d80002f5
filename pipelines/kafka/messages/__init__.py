"""Messages of Kafka that kafka-python lacks: the JSON schemas of Apache Kafka 4.3.1, unchanged."""
