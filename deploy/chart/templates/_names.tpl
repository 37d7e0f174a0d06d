{{- define "kubecast.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kubecast.fullname" -}}
{{- $name := include "kubecast.name" . }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* What has no namespace is named with the release's, so that two releases do not share it. */}}
{{- define "kubecast.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "kubecast.fullname" .) | trunc 253 | trimSuffix "-" }}
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
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
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
