# The image of a release: the binary of the archive and nothing else. `make release` gives it a folder with
# linux/amd64/origami and linux/arm64/origami.
FROM scratch
ARG TARGETPLATFORM
COPY LICENSE NOTICE /licenses/
COPY $TARGETPLATFORM/origami /usr/bin/origami
# The folder of temporary files, which an empty image lacks and sockets of plugins need, belongs to the user.
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["/usr/bin/origami"]
