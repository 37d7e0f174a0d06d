package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// kinds are Kueue's CustomResourceDefinitions, which build.sh takes from its module.
//
//go:embed crds
var kinds embed.FS

var errNoKinds = errors.New("there are none in this program; devcontrollers/build.sh builds it with them")

// installKinds installs the kinds, and waits until they are served. Versions other than the stored
// one are left out: they need a webhook that converts.
func installKinds(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	crds := client.Resource(apiextensions.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	files, err := fs.Glob(kinds, "crds/*.yaml")
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errNoKinds
	}
	var names []string
	missing := map[string]bool{} // kinds that the API server does not say it serves
	for _, file := range files {
		text, err := kinds.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(bytes.TrimPrefix(text, []byte("---\n")), &crd.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := onlyStored(crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if _, err := crds.Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "devcontrollers", Force: true}); err != nil {
			return err
		}
		names = append(names, crd.GetName())
		missing[crd.GetName()] = true
	}
	for _, name := range names {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			crd, err := crds.Get(ctx, name, metav1.GetOptions{})
			return err == nil && isEstablished(crd), err
		})
		if err != nil {
			return fmt.Errorf("%s is not served: %w", name, err)
		}
	}
	// Controllers ask discovery for the kinds, which learns of them a moment later.
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, lists, err := found.ServerGroupsAndResources()
		if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
			return false, err
		}
		for _, list := range lists {
			group, _, _ := strings.Cut(list.GroupVersion, "/")
			for _, kind := range list.APIResources {
				delete(missing, kind.Name+"."+group)
			}
		}
		return len(missing) == 0, nil
	})
}

// onlyStored removes all versions but the stored one.
func onlyStored(crd *unstructured.Unstructured) error {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok && v["storage"] == true {
			return unstructured.SetNestedSlice(crd.Object, []any{v}, "spec", "versions")
		}
	}
	return errors.New("no version is stored")
}

func isEstablished(crd *unstructured.Unstructured) bool {
	var typed apiextensions.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &typed); err != nil {
		return false
	}
	for _, c := range typed.Status.Conditions {
		if c.Type == apiextensions.Established {
			return c.Status == apiextensions.ConditionTrue
		}
	}
	return false
}
