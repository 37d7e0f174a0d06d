{{- define "kubecast.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* A longer name is cut, and ends with a hash of the whole, so that those of two releases differ. Services are named by it. */}}
{{- define "kubecast.fullname" -}}
{{- $name := .Values.fullnameOverride }}
{{- if not $name }}
{{- $name = .Release.Name }}
{{- if not (contains (include "kubecast.name" .) $name) }}{{ $name = printf "%s-%s" $name (include "kubecast.name" .) }}{{ end }}
{{- end }}
{{- if gt (len $name) 50 }}{{ $name = printf "%s-%s" ($name | trunc 41 | trimSuffix "-") (sha256sum $name | trunc 8) }}{{ end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- fail (printf "%s cannot name a Service, which begins with a letter and has letters, digits and - only: set fullnameOverride" (quote $name)) }}
{{- end }}
{{- $name }}
{{- end }}

{{- /* What has no namespace is named with the release's, so that two releases do not share it. Neither part has a colon. */}}
{{- define "kubecast.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "kubecast.fullname" .) }}
{{- end }}

{{- define "kubecast.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "kubecast.fullname" .) }}
{{- else }}{{ required "serviceAccount.create is false: serviceAccount.name says which one there is" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "kubecast.selector" -}}
app.kubernetes.io/name: {{ include "kubecast.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end }}

{{- define "kubecast.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- range $key, $_ := .Values.commonLabels }}
{{- if has $key (include "kubecast.keysOfLabels" . | fromJsonArray) }}{{ fail (printf "commonLabels has %s, which the chart gives" $key) }}{{ end }}
{{- end }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kubecast.keysOfLabels" -}}
["helm.sh/chart","app.kubernetes.io/name","app.kubernetes.io/instance","app.kubernetes.io/component","app.kubernetes.io/version","app.kubernetes.io/managed-by"]
{{- end }}

{{- /* All labels of something that has more, which win over commonLabels. */}}
{{- define "kubecast.labelsAnd" -}}
{{- range $key, $_ := .more }}
{{- if has $key (include "kubecast.keysOfLabels" . | fromJsonArray) }}{{ fail (printf "%s has %s, which the chart gives" $.of $key) }}{{ end }}
{{- end }}
{{- merge (deepCopy .more) (include "kubecast.labels" .root | fromYaml) | toYaml }}
{{- end }}

{{- define "kubecast.labels" -}}
{{ include "kubecast.selector" . }}
{{ include "kubecast.ownLabels" . }}
{{- end }}

{{- /* Jobs have labels of their own, so that neither the Service nor a policy takes their pods for gateways. */}}
{{- define "kubecast.jobSelector" -}}
app.kubernetes.io/name: {{ include "kubecast.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: job
{{- end }}

{{- define "kubecast.jobLabels" -}}
{{ include "kubecast.jobSelector" . }}
{{ include "kubecast.ownLabels" . }}
{{- end }}

{{- define "kubecast.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "kubecast.containerSecurity" -}}
{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
{{- end }}

{{- define "kubecast.podSecurity" -}}
{{- if .Values.podSecurityContext }}{{ toJson .Values.podSecurityContext }}
{{- else }}{runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
{{- end }}
{{- end }}
