# syntax=docker/dockerfile:1

# The image holds one static binary and the system's root certificates: no shell, no package manager, no user but a number.
#
#	docker build --build-arg VERSION=v0.1.0 -t paidonce .
#	docker run -p 8080:8080 -v ./paidonce.yaml:/etc/paidonce/paidonce.yaml:ro --env-file secrets.env paidonce          # serve
#	docker run -v ./paidonce.yaml:/etc/paidonce/paidonce.yaml:ro --env-file secrets.env paidonce work

FROM golang:1.26-bookworm AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOTOOLCHAIN=local
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=devel
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -ldflags "-s -w -X main.release=${VERSION}" -o /out/paidonce ./cmd/paidonce

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/paidonce /paidonce
# nobody's number on every system; the binary writes no files.
USER 65532:65532
ENV PAIDONCE_CONFIG=/etc/paidonce/paidonce.yaml
# 8080: webhooks and /v1. The admin listeners (9090 of serve, 9091 of work) stay inside unless the configuration opens them.
EXPOSE 8080
# Asks serve; for work, use ["CMD", "/paidonce", "health", "--work"] instead. There is no shell to run it in.
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 CMD ["/paidonce", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/paidonce"]
CMD ["serve"]
