# Images of Millrace, in one layout: Node and /opt/millrace with the build and its packages; `millrace` on PATH; user 10001.
#
#   docker build --target runtime  -t millrace/runtime:0.1.0 .    coordinators and workers; jobs' own images begin FROM it
#   docker build --target operator -t millrace/operator:0.1.0 .
#   docker build --target examples -t millrace/examples:0.1.0 .   runtime with examples/ and the data of flights
#
# e2e/cluster packs the same without a builder.
ARG NODE=24-bookworm-slim

FROM node:${NODE} AS build
WORKDIR /opt/millrace
COPY package.json package-lock.json ./
# The compiler's own binary is an optional package of its.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY crds ./crds
COPY runtime ./runtime
COPY operator ./operator
RUN npm run build && chmod 755 dist/runtime/cli/bin/main.js

# Node itself is there already: the optional package that brings it along is left out.
FROM node:${NODE} AS packages
WORKDIR /opt/millrace
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:${NODE} AS base
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn-* \
  /usr/local/bin/yarn /usr/local/bin/yarnpkg \
  && ln -s /opt/millrace/dist/runtime/cli/bin/main.js /usr/local/bin/millrace
# The root file system is read-only on a cluster; /tmp is a volume there.
ENV NODE_ENV=production HOME=/tmp
WORKDIR /opt/millrace
COPY package.json LICENSE ./
USER 10001:10001

FROM base AS operator
COPY --from=packages /opt/millrace/node_modules ./node_modules
COPY --from=build /opt/millrace/dist ./dist
ENTRYPOINT ["node", "/opt/millrace/dist/operator/main.js"]

FROM base AS runtime
COPY --from=packages /opt/millrace/node_modules ./node_modules
COPY --from=build /opt/millrace/dist ./dist
ENTRYPOINT ["millrace"]

FROM runtime AS examples
COPY examples /opt/examples
COPY --from=build /opt/millrace/node_modules/vega-datasets/data/flights-3m.parquet /opt/examples/flights/flights-3m.parquet
