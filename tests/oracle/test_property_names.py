"""Names of client properties, against those of Kafka."""

from quotaflow.pipelines.config.kafka_names import KAFKA_PROPERTIES

from .kafka_programs import printed


def test_every_property_of_kafkas_clients_is_there() -> None:
    assert sorted(KAFKA_PROPERTIES) == printed("PropertyNames")
