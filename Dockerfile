# docker build -t probnb . && docker run -p 8888:8888 probnb
# JupyterLab with every chapter, PyTorch for CPUs. TORCH_INDEX is the address that PyTorch's page
# "Start locally" names for CPUs; without it the image has the build for GPUs, some gigabytes more.
# docker build --target workflow -t probnb-workflow . makes the image for Kubernetes, see workflow/.
FROM python:3.13-slim AS library
ARG TORCH_INDEX=
RUN useradd --create-home --uid 1000 reader
WORKDIR /srv/probnb
COPY requirements.txt ./
RUN if [ -n "$TORCH_INDEX" ]; then \
      grep -E '^torch(vision)?==' requirements.txt > /tmp/torch.txt \
      && pip install --no-cache-dir --no-deps --index-url "$TORCH_INDEX" -r /tmp/torch.txt; \
    else \
      pip install --no-cache-dir -c requirements.txt torch torchvision; \
    fi \
    && pip install --no-cache-dir --no-deps -r requirements.txt \
    && pip install --no-cache-dir jupyterlab -c requirements.txt
COPY --chown=reader:reader . .
RUN pip install --no-cache-dir --no-deps -e . && chown reader:reader .

# Snakemake in an environment of its own, which is the first to be found; it copies with rsync, any.
FROM library AS workflow
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends rsync \
    && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/workflow \
    && /opt/workflow/bin/pip install --no-cache-dir -r workflow/requirements.txt
ENV PATH=/opt/workflow/bin:$PATH
USER 1000

FROM library AS book
USER 1000
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser"]
