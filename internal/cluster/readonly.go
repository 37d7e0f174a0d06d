package cluster

import (
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"
)

// cacheable are the verbs that the gateway answers; a kind is in the cache if the API server has the last two.
var cacheable = []string{"get", "list", "watch"}

// readOnly makes discovery documents say what is true of the gateway: kinds that can be listed and watched, with these
// verbs and get, and no subresources. Other documents stay as they are.
//
// Clients believe discovery: kubectl chooses by verbs what `get all` asks for, and dashboards hide what cannot be done.
// Whatever is left out would be answered with 404 or 405.
func readOnly(d *Document) (*Document, error) {
	media, _, err := mime.ParseMediaType(d.ContentType)
	if err != nil || media != "application/json" {
		return d, nil
	}
	var head struct{ Kind string }
	if json.Unmarshal(d.Body, &head) != nil {
		return d, nil
	}
	var rewrite func(map[string]any)
	switch head.Kind {
	case "APIResourceList":
		rewrite = func(list map[string]any) { list["resources"] = readable(list["resources"], "name") }
	case "APIGroupDiscoveryList":
		rewrite = func(list map[string]any) {
			for _, group := range members(list["items"]) {
				for _, version := range members(group["versions"]) {
					version["resources"] = readable(version["resources"], "resource")
				}
			}
		}
	default:
		return d, nil
	}
	var document map[string]any
	if err := json.Unmarshal(d.Body, &document); err != nil {
		return nil, fmt.Errorf("a %s that is none: %w", head.Kind, err)
	}
	rewrite(document)
	body, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return &Document{Body: body, ContentType: d.ContentType, Hash: d.Hash}, nil
}

// readable is the part of the resources that the gateway serves.
func readable(resources any, name string) []any {
	served := []any{}
	for _, resource := range members(resources) {
		if text, _ := resource[name].(string); strings.Contains(text, "/") {
			continue
		}
		var verbs []any
		all, _ := resource["verbs"].([]any)
		for _, verb := range cacheable {
			if slices.Contains(all, any(verb)) {
				verbs = append(verbs, verb)
			}
		}
		if !slices.Contains(verbs, any("list")) || !slices.Contains(verbs, any("watch")) {
			continue
		}
		resource["verbs"] = verbs
		delete(resource, "subresources")
		served = append(served, resource)
	}
	return served
}

// members are the objects in a JSON array.
func members(array any) (objects []map[string]any) {
	elements, _ := array.([]any)
	for _, element := range elements {
		if object, ok := element.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}
