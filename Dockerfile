# docker build -t probnb . && docker run -p 8888:8888 probnb
# JupyterLab with every chapter, PyTorch for CPUs. TORCH_INDEX is the address that PyTorch's page
# "Start locally" names for CPUs; without it the image has the build for GPUs, some gigabytes more.
FROM python:3.13-slim
ARG TORCH_INDEX=
RUN useradd --create-home --uid 1000 reader
WORKDIR /srv/probnb
COPY requirements.txt ./
RUN if [ -n "$TORCH_INDEX" ]; then \
      pip install --no-cache-dir --no-deps --index-url "$TORCH_INDEX" \
        $(grep -E '^torch(vision)?==' requirements.txt); \
    else \
      pip install --no-cache-dir -c requirements.txt torch torchvision; \
    fi \
    && pip install --no-cache-dir --no-deps -r requirements.txt \
    && pip install --no-cache-dir jupyterlab -c requirements.txt
COPY --chown=reader:reader . .
RUN pip install --no-cache-dir --no-deps -e . && chown reader:reader .
USER reader
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser"]
