#!/usr/bin/env bash
# Runs a command that has Go download modules, and in place of a line for each says every few seconds how far that is. What it
# says goes to file descriptor 4 if that is open (for who keeps the command's own output), else to standard error.
#
#   scripts/downloads.sh MODULE COMMAND…     MODULE: the directory whose go.mod names them
set -uo pipefail

if { : >&4; } 2>/dev/null; then exec 5>&4; else exec 5>&2; fi
module=$1
shift

# missing counts the modules of go.mod that are not in the module cache. Some of them may not be needed.
missing() {
	local cache count=0 name version
	cache=$(go env GOMODCACHE)/cache/download
	while read -r name version; do
		[ -e "$cache/$name/@v/$version.zip" ] || count=$((count + 1))
	done < <(awk '$1 == "require" && NF > 2 { print $2, $3 } /^\t/ && $2 ~ /^v/ { print $1, $2 }' "$module/go.mod" | sed 's/[A-Z]/!\L&/g')
	echo "$count"
}

# tell passes on what is not about a download.
tell() {
	local line count=0 all=0 began=0 said=-100 passed left
	while IFS= read -r line; do
		if [[ $line != "go: downloading "* ]]; then
			printf '%s\n' "$line" >&2
			continue
		fi
		[ $count -gt 0 ] || all=$1 began=$SECONDS
		count=$((count + 1)) passed=$((SECONDS - began)) left=""
		[ $((SECONDS - said)) -ge 5 ] || continue
		said=$SECONDS
		[ $all -ge $count ] || all=$count
		[ $passed -lt 5 ] || left=", some $(((all - count) * passed / count)) s left"
		echo "downloading Go modules: $count of about $all$left" >&5
	done
}

{ "$@" 2>&1 >&3 3>&- 4>&- | tell "$(missing)" 3>&-; } 3>&1
