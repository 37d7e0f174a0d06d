# The gateway as a static binary with the portal inside, in an image that holds nothing else.
FROM node:22-bookworm-slim AS portal
WORKDIR /src/web
COPY web/package.json web/package-lock.json ./
COPY web/sdk/package.json sdk/
COPY web/portal/package.json portal/
RUN npm ci --no-audit --no-fund
COPY web ./
RUN npm run build

FROM golang:1.26-bookworm AS gateway
ARG VERSION=development
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY web web
COPY --from=portal /src/web/portal/dist web/portal/dist
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /gateway ./cmd/gateway

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=gateway /gateway /gateway
EXPOSE 8080 9090
ENTRYPOINT ["/gateway"]
CMD ["serve", "--config", "/etc/kubecast/gateway.yaml"]
