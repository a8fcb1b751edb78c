# `fakecri serve` as a container: the CRI on /run/fakecri/cri.sock, its control on ctl.sock beside it.
# docker/build makes the wheels that this copies, so that the build itself needs no network.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE} AS installed
COPY wheels /wheels
RUN python3 -m venv /opt/fakecri \
 && /opt/fakecri/bin/pip install --no-cache-dir --no-index --find-links /wheels "refkubelet[reflection]"

FROM ${BASE}
COPY --from=installed /opt/fakecri /opt/fakecri
ENV PATH=/opt/fakecri/bin:${PATH} FAKECRI_CONTROL=unix:///run/fakecri/ctl.sock
VOLUME /run/fakecri
ENTRYPOINT ["fakecri"]
CMD ["serve", "--listen", "unix:///run/fakecri/cri.sock", "--control", "unix:///run/fakecri/ctl.sock"]
