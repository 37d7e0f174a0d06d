{{- /* The files that the configuration names, for the gateway and for the job that looks for what is missing. */}}
{{- define "kubecast.mounts" -}}
- {name: config, mountPath: /etc/kubecast, readOnly: true}
{{- if .Values.keys.existingSecret }}
- {name: keys, mountPath: /etc/kubecast-keys, readOnly: true}
{{- end }}
{{- if .Values.tls.existingSecret }}
- {name: tls, mountPath: /etc/kubecast-tls, readOnly: true}
{{- end }}
{{- if and .Values.history.existingSecret (include "kubecast.databaseServer" .) }}
- {name: history-password, mountPath: /etc/kubecast-history, readOnly: true}
{{- end }}
{{- if .Values.edge.enabled }}
- {name: edge, mountPath: /etc/kubecast-edge, readOnly: true}
{{- end }}
{{- range .Values.clusters }}
- {name: {{ printf "cluster-%s" .name }}, mountPath: {{ printf "/etc/kubecast-clusters/%s" .name }}, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kubecast.volumes" -}}
{{- with .Values.keys.existingSecret }}
- {name: keys, secret: {secretName: {{ . }}, defaultMode: 0440}}
{{- end }}
{{- with .Values.tls.existingSecret }}
- {name: tls, secret: {secretName: {{ . }}, defaultMode: 0440}}
{{- end }}
{{- if and .Values.history.existingSecret (include "kubecast.databaseServer" .) }}
- {name: history-password, secret: {secretName: {{ .Values.history.existingSecret }}, defaultMode: 0440}}
{{- end }}
{{- if .Values.edge.enabled }}
- {name: edge, secret: {secretName: {{ .Values.edge.existingSecret }}, defaultMode: 0440}}
{{- end }}
{{- range .Values.clusters }}
- {name: {{ printf "cluster-%s" .name }}, secret: {secretName: {{ .existingSecret }}, defaultMode: 0440}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
