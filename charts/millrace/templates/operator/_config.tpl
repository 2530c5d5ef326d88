{{/* The operator's config: operator/resources/operator-config.ts reads it. */}}
{{- define "millrace.config" -}}
{{- $name := include "millrace.name" . -}}
{{- $storage := .Values.defaults.storage -}}
{{- $nats := .Values.defaults.nats -}}
version: 1
namespaces: {{ toJson .Values.namespaces }}
defaults:
  image: {{ include "millrace.runtimeImage" . | quote }}
  {{- if and $storage.savepoints (not $storage.checkpoints) }}
  {{- fail "defaults.storage.savepoints needs defaults.storage.checkpoints beside it: the chart's own S3 server has one bucket" }}
  {{- end }}
  {{- if include "millrace.ownS3" . }}
  storage:
    checkpoints: s3://{{ .Values.s3Server.bucket }}/jobs
    s3:
      endpoint: http://{{ $name }}-s3.{{ .Release.Namespace }}.svc:7070
      region: us-east-1
      forcePathStyle: true
      credentialsSecret: {{ $name }}-s3
  {{- else if $storage.checkpoints }}
  storage:
    checkpoints: {{ $storage.checkpoints | quote }}
    {{- with $storage.savepoints }}
    savepoints: {{ . | quote }}
    {{- end }}
    s3:
      {{- with $storage.s3.endpoint }}
      endpoint: {{ . | quote }}
      {{- end }}
      {{- with $storage.s3.region }}
      region: {{ . | quote }}
      {{- end }}
      forcePathStyle: {{ $storage.s3.forcePathStyle }}
      {{- with $storage.s3.credentialsSecret }}
      credentialsSecret: {{ . | quote }}
      {{- end }}
  {{- end }}
  {{- if include "millrace.ownNats" . }}
  nats:
    url: nats://{{ $name }}-nats.{{ .Release.Namespace }}.svc:4222
  {{- else if $nats.url }}
  nats:
    url: {{ $nats.url | quote }}
    tls: {{ $nats.tls }}
    {{- with $nats.credentialsSecret }}
    credentialsSecret: {{ . | quote }}
    {{- end }}
  {{- end }}
  {{- with .Values.defaults.serviceAccountName }}
  serviceAccountName: {{ . | quote }}
  {{- end }}
  {{- with .Values.defaults.coordinator.resources }}
  coordinatorResources: {{ toJson . }}
  {{- end }}
  {{- with .Values.defaults.worker.resources }}
  workerResources: {{ toJson . }}
  {{- end }}
natsAccess:
  {{- if include "millrace.ownNats" . }}
  kind: own server
  keysSecret: {{ $name }}-nats-keys
  configSecret: {{ $name }}-nats-accounts
  {{- else if .Values.natsSigningKey.secret }}
  {{- if $nats.credentialsSecret }}
  {{- fail "natsSigningKey and defaults.nats.credentialsSecret exclude each other: jobs have credentials of their own, or shared ones" }}
  {{- end }}
  kind: signing key
  secret: {{ .Values.natsSigningKey.secret }}
  account: {{ required "natsSigningKey.account: the account's public key is needed beside natsSigningKey.secret" .Values.natsSigningKey.account }}
  {{- else }}
  kind: shared
  {{- end }}
networkPolicy: {{ .Values.networkPolicy.enabled }}
{{- if .Values.webhook.enabled }}
webhook:
  configuration: {{ include "millrace.webhookConfiguration" . }}
  service: {{ $name }}-webhook
  secret: {{ $name }}-webhook
  port: 9443
{{- end }}
lease: {{ $name }}-operator
port: 8080
logLevel: {{ .Values.operator.logLevel }}
{{- end }}

{{/* Cluster-wide, hence with the namespace in it. */}}
{{- define "millrace.webhookConfiguration" -}}
{{ printf "%s-%s" .Release.Namespace (include "millrace.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
