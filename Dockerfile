# quotaflow on one machine: tables in a volume, jobs by `docker run ... run --once`, or `run --every 60s`.
#     make release && docker build -t quotaflow .
# Without Docker: .ci/release/dockerfile_steps.py prints these steps as a shell script.
FROM debian:bookworm-slim

# A slim image may lack the folder, into which the package of Java links: then it cannot be installed.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates openjdk-17-jre-headless python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --uid 10001 --create-home --home-dir /var/lib/quotaflow quotaflow

COPY requirements.txt dist/quotaflow-*-py3-none-any.whl /tmp/quotaflow/

# Every package with its sum; the wheel itself needs nothing more then.
RUN python3 -m venv /opt/quotaflow \
    && /opt/quotaflow/bin/pip install --no-cache-dir --require-hashes --requirement /tmp/quotaflow/requirements.txt \
    && /opt/quotaflow/bin/pip install --no-cache-dir --no-deps /tmp/quotaflow/quotaflow-*-py3-none-any.whl \
    && /opt/quotaflow/bin/pip check \
    && rm -r /tmp/quotaflow

ENV PATH=/opt/quotaflow/bin:/usr/local/bin:/usr/bin:/bin
ENV QUOTAFLOW_HOME=/var/lib/quotaflow
ENV XDG_CACHE_HOME=/opt/quotaflow/cache

# The jars of Spark, checked against the sums of the wheel, and SQL for DuckDB: a container fetches
# nothing, and would lose what it translates.
RUN python3 -c 'from quotaflow.pipelines.spark.jars import spark_jars; spark_jars(print)' \
    && python3 -m quotaflow.pipelines.results.answers.all_translations \
    && chown -R quotaflow /opt/quotaflow/cache

USER quotaflow
WORKDIR /var/lib/quotaflow
VOLUME /var/lib/quotaflow

# As Ctrl-C: the first process of a container ignores the default, SIGTERM.
STOPSIGNAL SIGINT
ENTRYPOINT ["quotaflow"]
CMD ["--help"]
