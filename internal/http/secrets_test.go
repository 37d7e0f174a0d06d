package http

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/http/rest"
)

// TestSecretsValuesInAnnotationsAreShownToNobody: tools keep what a Secret says in its annotations.
// It is in no form of the object, and no selector, order or count tells a right guess from a wrong
// one.
func TestSecretsValuesInAnnotationsAreShownToNobody(t *testing.T) {
	const token, data = "eyJhbGciOi-THE-TOKEN", "aHVudGVyMg=="
	put := func(g *gateway, n int) {
		g.api.Put("secrets", "a/dockercfg", `data:={".dockercfg":"`+data+`"}`, fmt.Sprintf(`metadata.annotations:={"n":"%d",
			"openshift.io/token-secret.value":"%s%d", "kapp.k14s.io/original":"{\"data\":{\".dockercfg\":\"%s\"}}",
			"kubernetes.io/service-account.name":"builder"}`, n, token, n, data))
	}
	inBubble(t, func(t *testing.T, g *gateway) {
		put(g, 0)
		const path = "/api/v1/namespaces/a/secrets"
		said := map[string]string{}
		accepts := map[string]string{"json": rest.AsJSON, "table": "application/json;as=Table;v=v1;g=meta.k8s.io", "metadata": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
			"metadata list": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
		for form, accept := range accepts {
			said[form] = g.get(path, "Accept: "+accept).body
			said[form+" of one"] = g.get(path+"/dockercfg", "Accept: "+accept).body
			said[form+" with objects"] = g.get(path+"?includeObject=Object", "Accept: "+accept).body
		}
		said["fields"] = g.get(path + "?fields=metadata.annotations").body
		value := fieldValue.Replace(token + "0")
		for _, field := range []string{`metadata.annotations.openshift\.io/token-secret\.value`, "metadata.annotations.*", "metadata.annotations.@this", "metadata.annotations.@values.0"} {
			right, wrong := g.get(path+"?fieldSelector="+escape(field+"="+value)), g.get(path+"?fieldSelector="+escape(field+"=guess"))
			if right.code != wrong.code || strings.Contains(right.body, "dockercfg") != strings.Contains(wrong.body, "dockercfg") {
				t.Errorf("%s tells a right guess, %d %s, from a wrong one, %d %s", field, right.code, right.body, wrong.code, wrong.body)
			}
			said["counts by "+field] = g.get(path + "?countBy=" + escape(field)).body
			said["sorted by "+field] = g.get(path + "?limit=1&sort=" + escape(field)).body
		}

		streams := map[string]*events{"stream": g.stream(path), "patches": g.stream(path + "?deltas=merge-patch"), "some fields": g.stream(path + "?fields=metadata.annotations")}
		ctx, cancel := context.WithTimeout(context.Background(), g.patience)
		defer cancel()
		watch, err := g.client.Do(g.newRequest(ctx, "GET", path+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Body.Close()
		lines := bufio.NewScanner(watch.Body)
		for lines.Scan() && !strings.Contains(lines.Text(), metav1.InitialEventsAnnotationKey) {
			said["watch"] += lines.Text()
		}
		for name, s := range streams {
			said[name+"'s snapshot"] = s.next().raw
			s.until("synced")
		}
		put(g, 1)
		for name, s := range streams {
			said[name] = s.next().raw
			s.close()
		}
		lines.Scan()
		said["watch"] += lines.Text()

		for where, text := range said {
			if strings.Contains(text, "THE-TOKEN") || strings.Contains(text, data) {
				t.Errorf("%s: a Secret's value: %s", where, text)
			}
			if text == "" {
				t.Errorf("%s: nothing was said", where)
			}
		}
		for _, where := range []string{"json", "metadata", "fields", "stream", "watch"} {
			if !strings.Contains(said[where], `"openshift.io/token-secret.value":""`) || !strings.Contains(said[where], `"kubernetes.io/service-account.name":"builder"`) {
				t.Errorf("%s: the annotations' names, and the harmless values, should be seen: %s", where, said[where])
			}
		}
	})
}

// fieldValue escapes what the syntax of field selectors asks to be escaped in a value.
var fieldValue = strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`)
