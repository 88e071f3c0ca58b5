# A server of one classifier: the base installation and the extra "serve", without PyTorch.
#
#   docker build -t frugalvae .
#   openssl rand -hex 24 > token.txt
#   docker run -p 127.0.0.1:8000:8000 -v frugalvae:/data -v "$PWD/token.txt:/run/secrets/token:ro" frugalvae
FROM python:3.13-slim

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1

WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m pip install -c constraints.txt '.[serve]'
RUN useradd --create-home --uid 10001 frugalvae && mkdir /data && chown frugalvae /data

USER 10001
WORKDIR /data
# The network is written once, and not by every container.
RUN python -c "from frugalvae.encoders.efficientnet import EfficientNetEncoder; EfficientNetEncoder()"

VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["python", "-m", "frugalvae.server.probe", "http://127.0.0.1:8000", "/run/secrets/token"]
ENTRYPOINT ["frugalvae", "serve"]
CMD ["/data/classes.frugal", "--teach", "--host", "0.0.0.0", "--token-file", "/run/secrets/token"]
