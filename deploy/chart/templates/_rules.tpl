{{- /* What the gateway's role permits, from its configuration. `gateway preflight` asks for the same. */}}
{{- define "kubecast.rules" -}}
{{- $c := include "kubecast.config" . | fromYaml }}
{{- $mode := dig "authorizer" "mode" "rbac" $c }}
{{- $byGroup := dict }}
{{- range $c.kinds.allow }}
{{- if eq . "*" }}{{- /* What rbac.extraRules permits is served. */}}
{{- if not $.Values.rbac.extraRules }}
{{- fail "config.kinds.allow has \"*\", which no role can permit: its \"*\" takes Secrets along, and subresources such as nodes/proxy and pods/exec. Name kinds, such as pods, jobs.batch and *.ray.io, or say in rbac.extraRules what the gateway may read" }}
{{- end }}
{{- else if hasPrefix "*." . }}{{- /* Likewise. */}}
{{- $group := trimPrefix "*." . }}
{{- $permitted := false }}
{{- range $.Values.rbac.extraRules }}{{ $permitted = or $permitted (has $group (.apiGroups | default list)) }}{{ end }}
{{- if not $permitted }}
{{- fail (printf "config.kinds.allow has %s, which no role can permit: the \"*\" of a role takes subresources along, and in some groups these lead further, as clusters/proxy. Name its kinds, or say in rbac.extraRules what of %s the gateway may read" . $group) }}
{{- end }}
{{- else if not (include "kubecast.matches" (dict "patterns" (dig "deny" list $c.kinds) "kind" .)) }}
{{- $parts := splitList "." . }}
{{- $group := join "." (rest $parts) }}
{{- $_ := set $byGroup $group (append (get $byGroup $group | default list) (first $parts)) }}
{{- end }}
{{- end }}
# What is served (config.kinds.allow, config.history.kinds).
{{- range $group, $resources := $byGroup }}
- apiGroups: [{{ $group | quote }}]
  resources: {{ $resources | uniq | toJson }}
  verbs: {{ if eq $group "metrics.k8s.io" }}[list]{{ else }}[get, list, watch]{{ end }}
{{- end }}
{{- if include "kubecast.serves" (dict "config" $c "kind" "pods") }}
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
{{- $queues := false }}
{{- range list "localqueues" "clusterqueues" "workloads" }}
{{- $queues = or $queues (include "kubecast.serves" (dict "config" $c "kind" (printf "%s.kueue.x-k8s.io" .))) }}
{{- end }}
{{- if and $queues (dig "queues" "enabled" true $c) }}
# Places in queues.
- apiGroups: [visibility.kueue.x-k8s.io]
  resources: [clusterqueues/pendingworkloads]
  verbs: [get]
{{- end }}
# kube-system's uid identifies the cluster. Clients that may see some namespaces, and the history, need the others.
- apiGroups: [""]
  resources: [namespaces]
  verbs: {{ if eq $mode "rbac" }}[get, list]{{ else }}[get, list, watch]{{ end }}
# Definitions say which kinds there are, and the columns of their tables.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
# APIServices say which kinds are served by servers of their own, whose versions say nothing of others'.
- apiGroups: [apiregistration.k8s.io]
  resources: [apiservices]
  verbs: [list]
{{- if eq $mode "rbac" }}
# From these the gateway decides who may see what (config.authorizer.mode: rbac).
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, clusterroles, rolebindings, clusterrolebindings]
  verbs: [get, list, watch]
{{- else if eq $mode "sar" }}
# The API server decides who may see what (config.authorizer.mode: sar).
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- if dig "auth" "serviceAccounts" "audiences" list $c }}
# The API server says whose a ServiceAccount's token is (config.auth.serviceAccounts).
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- with .Values.rbac.extraRules }}
{{ toYaml . }}
{{- end }}
{{- end }}
