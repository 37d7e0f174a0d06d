{{- /* MiB of memory that a replica needs (docs/operations.md, "Sizes"): the process, what it may keep beside objects, objects, full rings
     of pods and jobs of each cluster, and its streams while one replica is missing. A fifth is left to the kernel. */}}
{{- define "kubecast.memory" -}}
{{- $replicas := int64 (include "kubecast.replicas" .) }}
{{- $objects := div (mul (int64 .Values.size.pods) 56) 10240 }}
{{- $ring := include "kubecast.mebibytes" (include "kubecast.whole" (dig "ring" "bytes" "64Mi" .Values.config)) | int64 }}
{{- $rings := mul 2 (add 1 (len .Values.clusters)) $ring }}
{{- $streams := div (mul 36 (div (int64 .Values.size.streams) (max 1 (sub $replicas 1)))) 1024 }}
{{- if .Values.autoscaling.enabled }}{{ $streams = div (mul 72 (int64 .Values.autoscaling.streamsPerReplica)) 1024 }}{{ end }}
{{- $all := div (mul 5 (add 212 $objects $rings $streams)) 4 }}
{{- mul 64 (div (add $all 63) 64) }}
{{- end }}

{{- /* A number as its digits: Helm has it as a float, whose text from a million on is 1e+06. A text stays as it is. */}}
{{- define "kubecast.whole" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ int64 . }}{{ end }}
{{- end }}

{{- define "kubecast.mebibytes" -}}
{{- $number := regexFind "^[0-9]+" . | int64 }}
{{- $unit := regexReplaceAll "^[0-9]+" . "" }}
{{- if eq $unit "Ti" }}{{ mul $number 1048576 }}
{{- else if eq $unit "Gi" }}{{ mul $number 1024 }}
{{- else if eq $unit "Mi" }}{{ $number }}
{{- else if eq $unit "Ki" }}{{ div $number 1024 }}
{{- else if eq $unit "T" }}{{ mul $number 953674 }}
{{- else if eq $unit "G" }}{{ mul $number 954 }}
{{- else if eq $unit "M" }}{{ $number }}
{{- else if eq $unit "k" }}{{ div $number 1000 }}
{{- else }}{{ div $number 1048576 }}
{{- end }}
{{- end }}

{{- /* Milliseconds of a duration such as 1m30s or 1.5s. */}}
{{- define "kubecast.milliseconds" -}}
{{- $all := 0.0 }}
{{- range regexFindAll "[0-9.]+(ns|us|µs|ms|s|m|h)" . -1 }}
{{- $number := regexFind "^[0-9.]+" . | float64 }}
{{- $unit := regexReplaceAll "^[0-9.]+" . "" }}
{{- $all = addf $all (mulf $number (get (dict "h" 3600000.0 "m" 60000.0 "s" 1000.0 "ms" 1.0 "us" 0.001 "µs" 0.001 "ns" 0.000001) $unit)) }}
{{- end }}
{{- ceil $all | int64 }}
{{- end }}

{{- define "kubecast.gracePeriod" -}}
{{- $drain := include "kubecast.milliseconds" (toString (dig "drain" "20s" .Values.config)) | int64 }}
{{- $streams := add (int64 .Values.preStopSeconds) (div (add $drain 999) 1000) }}
{{- $given := .Values.terminationGracePeriodSeconds }}
{{- if kindIs "invalid" $given }}{{ add $streams 15 }}
{{- else if lt (int64 $given) (add $streams 5) }}
{{- fail (printf "terminationGracePeriodSeconds is %d: preStopSeconds and config.drain take %d s, and the end needs 5 s more, so at least %d" (int64 $given) $streams (add $streams 5)) }}
{{- else }}{{ int64 $given }}
{{- end }}
{{- end }}
