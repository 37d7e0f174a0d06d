package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rs/zerolog"
)

// Types of what refers to an image.
const (
	sbomType       types.MediaType = "application/vnd.cyclonedx+json"
	provenanceType types.MediaType = "application/vnd.in-toto+json"
)

// sbom lists what a binary is made of: the Go modules that it says itself, and the packages of the portal inside.
// It has neither a serial number nor the time of its making, which would be others each time.
func (s *source) sbom(b binary) ([]byte, error) {
	generator, err := bin.NewGenerator(b.path, bin.WithIncludeStdlib(true), bin.WithVersionOverride("v"+s.version), bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	bom, err := generator.Generate()
	if err != nil {
		return nil, fmt.Errorf("what %s is made of: %w", b.path, err)
	}
	bom.SerialNumber, bom.Metadata.Timestamp = "", s.created.Format(time.RFC3339)
	for _, p := range s.packages {
		at := "pkg:npm/" + p.Name + "@" + p.Version
		if p.Name[0] == '@' { // https://github.com/package-url/purl-spec: a namespace's @ is escaped
			at = "pkg:npm/%40" + p.Name[1:] + "@" + p.Version
		}
		*bom.Components = append(*bom.Components, cyclonedx.Component{
			BOMRef: at, PackageURL: at, Type: cyclonedx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, Scope: cyclonedx.ScopeRequired,
		})
	}
	var text bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	if err := encoder.Encode(bom); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// statement is in-toto's, version 1, about how an image was
// made (SLSA's provenance, version 1). The Go types that in-toto publishes are protobuf's, whose JSON differs
// from one run to the next.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []artifact `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     struct {
		BuildDefinition struct {
			BuildType            string            `json:"buildType"`
			ExternalParameters   map[string]string `json:"externalParameters"`
			ResolvedDependencies []artifact        `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
		} `json:"runDetails"`
	} `json:"predicate"`
}

type artifact struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// provenance says from which commit the image of a platform, of a SHA-256, was made, and by whom.
func (s *source) provenance(b binary, sha256 string) ([]byte, error) {
	made := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	made.Subject = []artifact{{Name: "kubecast/gateway", Digest: map[string]string{"sha256": sha256}}}
	of := &made.Predicate.BuildDefinition
	of.BuildType = repository + "/blob/main/release/main.go"
	of.ExternalParameters = map[string]string{"version": s.version, "platform": b.platform.String()}
	of.ResolvedDependencies = []artifact{{URI: "git+" + repository, Digest: map[string]string{"gitCommit": s.revision}}}
	made.Predicate.RunDetails.Builder.ID = s.builder
	return json.MarshalIndent(made, "", "  ")
}
