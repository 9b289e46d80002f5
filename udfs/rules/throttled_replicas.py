"""The lists leader. and follower.replication.throttled.replicas (KIP-73): their operations."""

ALL = "*"
SET, DELETE, APPEND, SUBTRACT = "SET", "DELETE", "APPEND", "SUBTRACT"
OPERATIONS = (SET, DELETE, APPEND, SUBTRACT)
"""By the number Kafka gives them (AlterConfigOp.OpType)."""
