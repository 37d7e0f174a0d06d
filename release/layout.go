package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation that names an image of a layout.
const refName = "org.opencontainers.image.ref.name"

// write writes the images of all platforms, and what refers to them, and returns the digest of the index of platforms.
// That index is the layout's first entry.
func (s *source) write(dir string) (v1.Hash, error) {
	if err := os.RemoveAll(dir); err != nil {
		return v1.Hash{}, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var referrers []v1.Image
	for _, b := range s.binaries {
		image, err := s.image(b)
		if err != nil {
			return v1.Hash{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &b.platform}})
		added, err := s.referrers(b, image)
		if err != nil {
			return v1.Hash{}, err
		}
		referrers = append(referrers, added...)
	}
	index, _ = mutate.Annotations(index, s.annotations()).(v1.ImageIndex)
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := to.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: s.version})); err != nil {
		return v1.Hash{}, err
	}
	for _, r := range referrers {
		if err := to.AppendImage(r); err != nil {
			return v1.Hash{}, err
		}
	}
	return index.Digest()
}

// referrers are what an image is made of, and how it was made.
func (s *source) referrers(b binary, image v1.Image) ([]v1.Image, error) {
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, err
	}
	sbom, err := s.sbom(b)
	if err != nil {
		return nil, err
	}
	provenance, err := s.provenance(b, subject.Digest.Hex)
	if err != nil {
		return nil, err
	}
	var all []v1.Image
	for _, r := range []struct {
		text []byte
		is   types.MediaType
	}{{sbom, sbomType}, {provenance, provenanceType}} {
		// What it is, is told by its configuration's type, too, which registries without artifactType read.
		artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), r.is)
		artifact, err := mutate.AppendLayers(artifact, static.NewLayer(r.text, r.is))
		if err != nil {
			return nil, err
		}
		referrer, ok := mutate.Subject(artifact, *subject).(v1.Image)
		if !ok {
			return nil, errors.New("a referrer is no image")
		}
		all = append(all, referrer)
	}
	return all, nil
}

// push copies an image's layout to a registry: first the images, so that whoever finds what refers to them finds them. It prints
// where each part can be had, the index of platforms first. None has a tag then: it gets one (tag) once all are signed.
func push(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("a directory and REGISTRY/REPOSITORY are needed")
	}
	from, err := layout.ImageIndexFromPath(args[0])
	if err != nil {
		return err
	}
	to, err := name.NewRepository(args[1], name.StrictValidation)
	if err != nil {
		return err
	}
	manifest, err := from.IndexManifest()
	if err != nil {
		return err
	}
	for i, d := range manifest.Manifests {
		at := to.Digest(d.Digest.String())
		switch {
		case i == 0 && d.MediaType.IsIndex():
			index, err := from.ImageIndex(d.Digest)
			if err != nil {
				return err
			}
			if err := remote.WriteIndex(at, index, options(ctx)...); err != nil {
				return err
			}
		case i > 0 && d.MediaType.IsImage():
			referrer, err := from.Image(d.Digest)
			if err != nil {
				return err
			}
			if err := remote.Write(at, referrer, options(ctx)...); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s: %s is no part of an image that was made here", args[0], d.Digest)
		}
		fmt.Println(at)
	}
	return nil
}

// tag names an index that was pushed.
func tag(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("REGISTRY/REPOSITORY@DIGEST and a tag are needed")
	}
	of, err := name.NewDigest(args[0], name.StrictValidation)
	if err != nil {
		return err
	}
	to, err := name.NewTag(of.Context().Name()+":"+args[1], name.StrictValidation)
	if err != nil {
		return err
	}
	index, err := remote.Index(of, options(ctx)...)
	if err != nil {
		return err
	}
	return remote.Tag(to, index, options(ctx)...)
}

// options are those of requests to a registry. Who may push is read as docker and its like write it, in ~/.docker/config.json.
func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("kubecast-release")}
}
