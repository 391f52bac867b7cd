# rumqd in a container: docker build -t rumq . (docs/guides/packages.md). /data keeps the log; settings come from the environment
# (log.durability is RUMQ_LOG_DURABILITY), or from a file: -v ./config.toml:/etc/rumq/config.toml and --config.
FROM python:3.13-slim AS build
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE config.toml ./
COPY commitlog commitlog
COPY router router
COPY rumq rumq
COPY pyspark_rumq pyspark_rumq
ARG EXTRAS=
# compiled, or not built at all
RUN python -m venv /opt/rumq \
    && RUMQ_COMPILE=require CFLAGS=-g0 /opt/rumq/bin/pip install --no-cache-dir ".${EXTRAS:+[${EXTRAS}]}" \
    && /opt/rumq/bin/python -c "from rumq.version import COMPILED, kernels; assert kernels() == COMPILED"

# rumq with Spark: docker build --target spark -t rumq-spark .
FROM build AS build-spark
RUN /opt/rumq/bin/pip install --no-cache-dir ".[spark]"

FROM python:3.13-slim AS spark
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-21-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 1883 --home-dir /data --shell /usr/sbin/nologin rumq
COPY --from=build-spark /opt/rumq /opt/rumq
ENV PATH=/opt/rumq/bin:$PATH
USER 1883:1883
WORKDIR /tmp
ENTRYPOINT ["rumqd", "spark", "run"]

# etcd for clusters, Debian's: docker build --target etcd -t rumq-etcd .
FROM debian:13-slim AS etcd
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends etcd-server etcd-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 2379 --home-dir /data --shell /usr/sbin/nologin rumq-etcd \
    && install -d -o rumq-etcd -g rumq-etcd -m 700 /data
ENV ETCD_DATA_DIR=/data/etcd
USER 2379:2379
VOLUME /data
EXPOSE 2379 2380
ENTRYPOINT ["etcd"]

FROM python:3.13-slim
RUN useradd --system --uid 1883 --home-dir /data --shell /usr/sbin/nologin rumq \
    && install -d -o rumq -g rumq -m 700 /data \
    && install -d -o rumq -g rumq -m 750 /etc/rumq
COPY --from=build /opt/rumq /opt/rumq
ENV PATH=/opt/rumq/bin:$PATH \
    RUMQ_DATA_DIR=/data \
    RUMQ_LISTENER_HOST="*" \
    RUMQ_GATEWAY_HOST="*" \
    RUMQ_GATEWAY_PORT=8080
USER 1883:1883
WORKDIR /data
VOLUME /data
# MQTT, MQTT over TLS, the page and figures; other nodes of a cluster: 7883 on
EXPOSE 1883 8883 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10m --start-interval=1s \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://localhost:{os.environ[\"RUMQ_GATEWAY_PORT\"]}/readyz', timeout=2)"]
ENTRYPOINT ["rumqd"]
CMD ["run"]
