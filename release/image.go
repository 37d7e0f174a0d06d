package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// file is one of an image's.
type file struct {
	name string // a directory if it ends with /
	mode int64
	text []byte
}

// base are the files beside the binary: who runs, and which authorities are trusted. Identity providers, databases and
// webhooks are reached by TLS.
func base() []file {
	return []file{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots()},
	}
}

// roots are the authorities that Mozilla trusts without conditions, which a file of certificates could not tell.
func roots() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return text.Bytes()
}

// image is that of one platform.
func (s *source) image(b binary) (v1.Image, error) {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range []struct {
		does  string
		files []file
	}{
		{"certificates of authorities, and the user", base()}, // first: it seldom changes
		{"the gateway", []file{{"gateway", 0o755, program}}},
	} {
		blob, err := layerOf(layer.files, s.created)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: blob, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: s.created}, CreatedBy: layer.does}})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = b.platform.OS, b.platform.Architecture, b.platform.Variant
	config.Created = v1.Time{Time: s.created}
	config.Config = v1.Config{
		User:         "65532:65532", // as the chart and the manifests name it, too: nobody on a node has this number
		WorkingDir:   "/",
		Env:          []string{"PATH=/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Entrypoint:   []string{"/gateway"},
		Cmd:          []string{"serve", "--config", "/etc/kubecast/gateway.yaml"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}},
		Labels:       s.annotations(),
	}
	return mutate.ConfigFile(image, config)
}

// annotations are those of the OCI image specification, "Pre-Defined Annotation Keys".
func (s *source) annotations() map[string]string {
	const at = "org.opencontainers.image."
	return map[string]string{
		at + "title": "kubecast", at + "description": "An HTTP and Server-Sent-Events gateway between Kubernetes and web portals",
		at + "source": repository, at + "documentation": repository + "/tree/main/docs", at + "licenses": "Apache-2.0",
		at + "version": s.version, at + "revision": s.revision, at + "created": s.created.Format(time.RFC3339),
	}
}

// repository is where the source is.
const repository = "https://github.com/kubecast/kubecast"

// layerOf is a layer of files, which are root's, so that who runs cannot change them.
func layerOf(files []file, modified time.Time) (v1.Layer, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: modified, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if f.name[len(f.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}
