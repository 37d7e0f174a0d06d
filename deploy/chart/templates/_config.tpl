{{- /* Whether a kind, such as jobs.batch, matches one of patterns. */}}
{{- define "kubecast.matches" -}}
{{- $group := join "." (rest (splitList "." .kind)) }}
{{- range .patterns }}
{{- if or (eq . "*") (eq . $.kind) (and $group (eq . (printf "*.%s" $group))) }}true{{ end }}
{{- end }}
{{- end }}

{{- define "kubecast.serves" -}}
{{- if and (include "kubecast.matches" (dict "patterns" (.config.kinds.allow) "kind" .kind)) (not (include "kubecast.matches" (dict "patterns" (dig "deny" list .config.kinds) "kind" .kind))) }}true{{ end }}
{{- end }}

{{- /* Whether the history is in a file, so that there can be one replica only. */}}
{{- define "kubecast.sqlite" -}}
{{- if hasPrefix "sqlite" (dig "history" "database" "none" .Values.config) }}true{{ end }}
{{- end }}

{{- /* Whether this is an edge, which asks another gateway, and needs no rights in the cluster. */}}
{{- define "kubecast.isEdge" -}}
{{- if or .Values.edge.enabled (dig "edge" "core" "" .Values.config) }}true{{ end }}
{{- end }}

{{- /* Whether the file of SQLite is in a volume of the chart's: unless config.history says where it is. */}}
{{- define "kubecast.volumeForHistory" -}}
{{- if and (eq (dig "history" "database" "none" .Values.config) "sqlite") (not (dig "history" "stateDir" "" .Values.config)) }}true{{ end }}
{{- end }}

{{- define "kubecast.databaseServer" -}}
{{- if contains "://" (dig "history" "database" "none" .Values.config) }}{{ if not (include "kubecast.sqlite" .) }}true{{ end }}{{ end }}
{{- end }}

{{- define "kubecast.replicas" -}}
{{- $least := 1 }}
{{- if and .Values.keys.existingSecret (not (include "kubecast.sqlite" .)) }}
{{- $least = max 2 (div (add (int64 .Values.size.streams) 9999) 10000) }}
{{- end }}
{{- $replicas := ternary $least .Values.replicas (kindIs "invalid" .Values.replicas) | int64 }}
{{- if and .Values.autoscaling.enabled (not (kindIs "invalid" .Values.replicas)) }}
{{- fail "replicas and autoscaling.enabled are both given: with an autoscaler the number is between autoscaling.minReplicas and autoscaling.maxReplicas; for none, turn it off" }}
{{- end }}
{{- if .Values.autoscaling.enabled }}{{ $replicas = int64 .Values.autoscaling.minReplicas }}{{ end }}
{{- if and (or (gt $replicas 1) .Values.autoscaling.enabled) (not (dig "auth" "cookieKeyFile" .Values.keys.existingSecret .Values.config)) }}
{{- fail "several replicas share a key for sessions: make a Secret with cookie.key and ops.token, and name it in keys.existingSecret" }}
{{- end }}
{{- $replicas }}
{{- end }}

{{- /* The configuration that the gateway gets: config, and what follows from other values. */}}
{{- define "kubecast.config" -}}
{{- $c := deepCopy .Values.config }}
{{- range list "ops" "tls" "auth" "stream" "history" "kinds" "cache" }}
{{- if not (index $c .) }}{{ $_ := set $c . dict }}{{ end }}
{{- end }}
{{- $_ := set $c "listen" ($c.listen | default ":8080") }}
{{- $_ := set $c "opsListen" ($c.opsListen | default ":9090") }}
{{- if .Values.keys.existingSecret }}
{{- $_ := set $c.ops "tokenFile" ($c.ops.tokenFile | default "/etc/kubecast-keys/ops.token") }}
{{- $_ := set $c.auth "cookieKeyFile" ($c.auth.cookieKeyFile | default "/etc/kubecast-keys/cookie.key") }}
{{- end }}
{{- if and (or (gt (int64 (include "kubecast.replicas" .)) 1) .Values.autoscaling.enabled) $c.ops.tokenFile (not (hasKey $c.stream "replicas")) }}
{{- $_ := set $c.stream "replicas" (list (printf "%s-replicas:%s" (include "kubecast.fullname" .) (last (splitList ":" $c.opsListen)))) }}
{{- end }}
{{- if .Values.tls.existingSecret }}
{{- $_ := set $c "tls" (dict "certFile" "/etc/kubecast-tls/tls.crt" "keyFile" "/etc/kubecast-tls/tls.key") }}
{{- end }}
{{- include "kubecast.configEdge" (dict "config" $c "root" .) }}
{{- include "kubecast.configClusters" (dict "config" $c "root" .) }}
{{- include "kubecast.configKinds" $c }}
{{- include "kubecast.configAddresses" $c }}
{{- include "kubecast.configSecrets" (dict "config" $c "root" .) }}
{{- include "kubecast.configHistory" (dict "config" $c "root" .) }}
{{- range list "ops" "tls" "auth" "stream" "history" "kinds" "cache" }}
{{- if not (index $c .) }}{{ $_ := unset $c . }}{{ end }}
{{- end }}
{{- toYaml $c }}
{{- end }}

{{- /* The cores of an edge, whose token and authorities are files of a Secret. */}}
{{- define "kubecast.configEdge" -}}
{{- $edge := .root.Values.edge }}
{{- if $edge.enabled }}
{{- if .root.Values.clusters }}{{ fail "clusters and edge.enabled are both given: an edge reaches clusters by its core, by the names that they have there (config.clusters)" }}{{ end }}
{{- if .config.edge }}{{ fail "edge.enabled and config.edge are both given: config.edge is for files that you mount yourself" }}{{ end }}
{{- if not $edge.core }}{{ fail "edge.core has no address: name the gateway of which this is an edge" }}{{ end }}
{{- if not $edge.existingSecret }}{{ fail "edge.existingSecret is empty: name the Secret with the token by which the core knows this gateway" }}{{ end }}
{{- $files := dict "core" $edge.core "tokenFile" (printf "/etc/kubecast-edge/%s" $edge.tokenKey) }}
{{- if $edge.caKey }}{{ $_ := set $files "caFile" (printf "/etc/kubecast-edge/%s" $edge.caKey) }}{{ end }}
{{- $_ := set .config "edge" $files }}
{{- end }}
{{- end }}

{{- define "kubecast.configClusters" -}}
{{- if .root.Values.clusters }}
{{- if .config.clusters }}{{ fail "clusters and config.clusters are both given: config.clusters is for files that you mount yourself" }}{{ end }}
{{- $all := list (dict "name" "default") }}
{{- range .root.Values.clusters }}
{{- $all = append $all (dict "name" .name "kubeconfig" (printf "/etc/kubecast-clusters/%s/%s" .name (.key | default "kubeconfig"))) }}
{{- end }}
{{- $_ := set .config "clusters" $all }}
{{- end }}
{{- $names := dict }}
{{- range .config.clusters }}
{{- if hasKey $names .name }}{{ fail (printf "two clusters have the name %s" .name) }}{{ end }}
{{- $_ := set $names .name true }}
{{- end }}
{{- end }}

{{- /* Kinds that are recorded are served. What is cached from the start is served, too. */}}
{{- define "kubecast.configKinds" -}}
{{- $allow := .kinds.allow | default (list "*") }}
{{- if ne (dig "database" "sqlite" .history) "none" }}
{{- range dig "kinds" list .history }}
{{- if include "kubecast.matches" (dict "patterns" (dig "deny" list $.kinds) "kind" .resource) }}
{{- fail (printf "config.history.kinds has %s, which config.kinds.deny denies" .resource) }}
{{- end }}
{{- if not (include "kubecast.matches" (dict "patterns" $allow "kind" .resource)) }}{{ $allow = append $allow .resource }}{{ end }}
{{- end }}
{{- end }}
{{- $_ := set .kinds "allow" $allow }}
{{- if not (hasKey .cache "preload") }}
{{- $preload := list }}
{{- range list "pods" "jobs.batch" }}
{{- if include "kubecast.serves" (dict "config" $ "kind" .) }}{{ $preload = append $preload . }}{{ end }}
{{- end }}
{{- if lt (len $preload) 2 }}{{ $_ := set .cache "preload" $preload }}{{ end }}
{{- end }}
{{- end }}

{{- /* A database's address is in a ConfigMap, so it has no password, neither its user's nor as a parameter, nor a file that may have one. */}}
{{- define "kubecast.withoutPassword" -}}
{{- if or (regexMatch "(?i)^\\s*[a-z0-9+]+://[^?]*:[^?]*@" .address) (regexMatch "(?i)(^|[?&;\\s])(password|passfile|sslpassword)\\s*=" .address) }}
{{- fail (printf "%s has a password, which would be in a ConfigMap: put it into a Secret, and name that in %s" .key .secret) }}
{{- end }}
{{- end }}

{{- define "kubecast.configHistory" -}}
{{- $history := .config.history }}
{{- if eq (dig "database" "" $history) "sqlite" }}
{{- $_ := set $history "stateDir" ($history.stateDir | default "/var/lib/kubecast") }}
{{- end }}
{{- include "kubecast.withoutPassword" (dict "address" (dig "database" "" $history) "key" "config.history.database" "secret" "history.existingSecret") }}
{{- if include "kubecast.databaseServer" .root }}
{{- if .root.Values.history.existingSecret }}
{{- $_ := set $history "passwordFile" ($history.passwordFile | default (printf "/etc/kubecast-history/%s" .root.Values.history.passwordKey)) }}
{{- end }}
{{- if .root.Values.history.migration.enabled }}{{ $_ := set $history "migrate" false }}{{ end }}
{{- end }}
{{- end }}

{{- /* What else the gateway asks: addresses by their keys. */}}
{{- define "kubecast.addresses" -}}
{{- $addresses := dict "config.tracing.endpoint" (dig "tracing" "endpoint" "" .) }}
{{- range $i, $issuer := dig "auth" "jwt" list . }}
{{- $_ := set $addresses (printf "config.auth.jwt[%d].issuer" $i) (dig "issuer" "" $issuer) }}
{{- $_ := set $addresses (printf "config.auth.jwt[%d].jwksURL" $i) (dig "jwksURL" "" $issuer) }}
{{- end }}
{{- $core := dig "edge" "core" list . }}
{{- range $i, $address := ternary (list $core) $core (kindIs "string" $core) }}
{{- $_ := set $addresses (printf "config.edge.core[%d]" $i) $address }}
{{- end }}
{{- range $i, $webhook := .webhooks }}
{{- $_ := set $addresses (printf "config.webhooks[%d].url" $i) (dig "url" "" $webhook) }}
{{- end }}
{{- toYaml $addresses }}
{{- end }}

{{- /* Nor has any other address a password. */}}
{{- define "kubecast.configAddresses" -}}
{{- range $key, $address := include "kubecast.addresses" . | fromYaml }}
{{- if regexMatch "(?i)^\\s*[a-z]+://[^/?#]*@" $address }}{{ fail (printf "%s has a password, which would be in a ConfigMap" $key) }}{{ end }}
{{- end }}
{{- end }}

{{- /* A Secret's file that no volume has is found out when the pod ends again and again. What is mounted by extraVolumeMounts may be there. */}}
{{- define "kubecast.configSecrets" -}}
{{- $files := dict "config.auth.oidcLogin.clientSecretFile" (dig "auth" "oidcLogin" "clientSecretFile" "" .config) "config.auth.cookieKeyFile" (dig "auth" "cookieKeyFile" "" .config) "config.ops.tokenFile" (dig "ops" "tokenFile" "" .config) }}
{{- range $key, $file := $files }}
{{- $mounted := false }}
{{- range $.root.Values.extraVolumeMounts }}{{ if hasPrefix (printf "%s/" (toString .mountPath | trimSuffix "/")) (printf "%s/" $file) }}{{ $mounted = true }}{{ end }}{{ end }}
{{- if and (not $mounted) (hasPrefix "/etc/kubecast/" $file) }}
{{- fail (printf "%s is %s, where the ConfigMap is: keys of the Secret that keys.existingSecret names are files in /etc/kubecast-keys" $key $file) }}
{{- end }}
{{- if and (not $mounted) (not $.root.Values.keys.existingSecret) (hasPrefix "/etc/kubecast-keys/" $file) }}
{{- fail (printf "%s is %s: name the Secret that has it in keys.existingSecret" $key $file) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kubecast.port" -}}
{{- $port := .listen | splitList ":" | last }}
{{- if or (not (regexMatch "^[1-9][0-9]{0,4}$" $port)) (gt (int64 $port) 65535) }}{{ fail (printf "%s has no port, such as :8080" .key) }}{{ end }}
{{- $port }}
{{- end }}

{{- define "kubecast.httpPort" -}}
{{- include "kubecast.port" (dict "key" "config.listen" "listen" (include "kubecast.config" . | fromYaml).listen) }}
{{- end }}

{{- define "kubecast.opsPort" -}}
{{- include "kubecast.port" (dict "key" "config.opsListen" "listen" (include "kubecast.config" . | fromYaml).opsListen) }}
{{- end }}
