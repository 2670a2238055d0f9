# A broker in a container: a user without rights, and kernels that were compiled when the image was built.
#
#   docker build -t tamis .
#   docker run --rm tamis check "price < 20"                       any command of tamis
#   docker run -p 7410:7410 -v tamis-data:/data -v ./tamis.toml:/etc/tamis.toml:ro tamis serve --config /etc/tamis.toml
#
# Whoever can be reached from outside of the container needs TLS and roles in tamis.toml (docs/service.md). Spark is not in it:
# an image of your own adds the extra `spark` and a Java 17 runtime.

FROM python:3.12-slim AS build
RUN pip install --no-cache-dir uv==0.13.7
WORKDIR /source
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY src ./src
RUN python -m venv --without-pip /opt/tamis \
 && uv pip install --no-cache --compile-bytecode --python /opt/tamis/bin/python --constraint requirements.lock ".[service]"

FROM python:3.12-slim
COPY --from=build /opt/tamis /opt/tamis
COPY tools/warm.py /opt/warm.py
# Kernels have a folder of their own that the user may write to: they depend on the processor, and on another one than that of
# the machine that built the image they are compiled again by the first start.
ENV PATH=/opt/tamis/bin:$PATH NUMBA_CACHE_DIR=/var/cache/tamis TAMIS_DATA=/data
RUN useradd --system --uid 10001 --home-dir /data --no-create-home tamis \
 && install -d -o tamis -g tamis /data /var/cache/tamis
USER tamis
# A step of its own, after the files have got the times that they have in the image: the cache compares them.
RUN python /opt/warm.py
WORKDIR /data
VOLUME /data
EXPOSE 7410
ENTRYPOINT ["tamis"]
CMD ["--help"]
