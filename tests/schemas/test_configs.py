"""Which values of configs may be shown."""

import json
import re
from pathlib import Path

from quotaflow.schemas.configs import CONFIGS, HARMLESS

SECRET = re.compile(r"password|secret|jaas|token|credential|key\b|keystore|truststore|ssl|sasl")


def test_every_config_of_topics_as_a_broker_lists_them_may_be_shown(golden: Path) -> None:
    lines = (golden / "lines" / "create_topics.jsonl").read_text().splitlines()
    topics = [topic for line in lines for topic in json.loads(line)["response"]["topics"]]
    configs = {config["name"]: config for topic in topics for config in topic["configs"]}
    assert len(configs) > 30
    assert not any(config["isSensitive"] for config in configs.values())
    assert configs.keys() - HARMLESS == set()


def test_what_a_plan_may_name_may_be_shown_and_no_name_tells_of_a_secret() -> None:
    assert CONFIGS.keys() <= HARMLESS
    assert [key for key in sorted(HARMLESS) if SECRET.search(key)] == []
