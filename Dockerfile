# Ottla in a container: built in one stage, run in another that holds the program and its libraries.
#
#   docker build -t ottla . && docker run -p 9092:9092 -v ottla:/data ottla
#
# Settings come as arguments (--override key=value) or as KAFKA_ environment variables.
FROM debian:12-slim AS build
WORKDIR /src
COPY . .
RUN OTTLA_BUILD=/build scripts/run --build-only

FROM debian:12-slim
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends libevent-core-2.1-7 libevent-pthreads-2.1-7 \
    libisal2 libjansson4 liblz4-1 libsnappy1v5 libssl3 libzstd1 zlib1g \
 && rm -rf /var/lib/apt/lists/* && useradd --system ottla && mkdir /data && chown ottla /data
COPY --from=build /build/ottla /usr/bin/ottla
USER ottla
VOLUME /data
EXPOSE 9092
ENV KAFKA_LOG_DIRS=/data KAFKA_LISTENERS=PLAINTEXT://:9092 \
    KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
ENTRYPOINT ["ottla", "server"]
