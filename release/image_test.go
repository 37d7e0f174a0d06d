package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const mostBytes = 30_000_000 // of an image, compressed

// An image that is pushed to a registry is what was built, says what it is made of and how it was made, and serves.
func TestAnImageThatIsPulledServes(t *testing.T) {
	program := command(t, "gateway", "-ldflags", "-s -w -X main.version=1.2.3", "./cmd/gateway")
	s := source{
		version: "1.2.3", revision: strings.Repeat("ab", 20), created: time.Unix(1_790_000_000, 0).UTC(), builder: "https://ci.example.org",
		packages: []Package{{"preact", "11.2.0"}, {"@tanstack/virtual-core", "3.19.11"}},
		binaries: []binary{{v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, program}},
	}
	release := command(t, "release", ".") // its tests run with the race detector, which compresses ten times slower
	dir := t.TempDir() + "/image"
	digest := s.build(t, release, dir)
	t.Run("it is the same the second time", func(t *testing.T) {
		again := t.TempDir() + "/again"
		if second := s.build(t, release, again); second != digest {
			t.Fatalf("%s, and then %s", digest, second)
		}
		if one, two := filesOf(t, dir), filesOf(t, again); !slices.Equal(one, two) {
			t.Errorf("the layouts differ: %q and %q", one, two)
		}
	})
	for kind, options := range map[string][]registry.Option{
		"of today":          {registry.WithReferrersSupport(true)},
		"without referrers": nil, // then a tag lists them
	} {
		t.Run("a registry "+kind, func(t *testing.T) {
			options := append([]registry.Option{registry.Logger(log.New(io.Discard, "", 0))}, options...)
			server := httptest.NewServer(registry.New(options...))
			t.Cleanup(server.Close)
			repository := strings.TrimPrefix(server.URL, "http://") + "/kubecast/gateway"
			tag := repository + ":1.2.3"
			for range 2 { // what is there already is no error
				out, err := exec.Command(release, "push", dir, repository).CombinedOutput()
				if pushed := strings.Fields(string(out)); err != nil || len(pushed) != 3 || pushed[0] != repository+"@"+digest.String() {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			if out, err := exec.Command(release, "tag", repository+"@"+digest.String(), "1.2.3").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			image := pull(t, tag, digest)
			checkReferrers(t, tag, image, s)
			serves(t, unpack(t, image), s.version)
		})
	}
}

// command builds a program, with further arguments, as releases are.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	program := t.TempDir() + "/" + name
	build := exec.Command("go", append([]string{"build", "-trimpath", "-o", program}, args...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if name == "gateway" {
		build.Dir = ".."
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// build builds the image as a release does, and returns the digest that is printed.
func (s *source) build(t *testing.T, release, dir string) (digest v1.Hash) {
	t.Helper()
	packages, err := json.Marshal(s.packages)
	if err != nil {
		t.Fatal(err)
	}
	list := t.TempDir() + "/packages.json"
	write(t, list, string(packages))
	args := []string{"image", "-version", s.version, "-revision", s.revision, "-builder", s.builder, "-created", fmt.Sprint(s.created.Unix()), "-packages", list, "-out", dir}
	for _, b := range s.binaries {
		args = append(args, b.platform.String()+"="+b.path)
	}
	out, err := exec.Command(release, args...).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if digest, err = v1.NewHash(strings.TrimSpace(string(out))); err != nil {
		t.Fatal(err)
	}
	return digest
}

// filesOf are a folder's files with what is in them, which their names say by its digest but for the first ones'.
func filesOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text := []byte("by its name")
		if !strings.Contains(path, "/blobs/") {
			text, err = os.ReadFile(path)
		}
		all = append(all, strings.TrimPrefix(path, dir)+": "+string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// pull is the image of this machine's platform that a tag names.
func pull(t *testing.T, tag string, want v1.Hash) v1.Image {
	t.Helper()
	ref, err := name.ParseReference(tag)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := index.Digest(); err != nil || digest != want {
		t.Fatalf("%s was pushed, and %s is there: %v", want, digest, err)
	}
	image, err := remote.Image(ref, remote.WithContext(t.Context()), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, layer := range layers {
		n, err := layer.Size()
		if err != nil {
			t.Fatal(err)
		}
		size += n
	}
	if size > mostBytes {
		t.Errorf("the image has %d bytes, of %d at most", size, mostBytes)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/gateway"}) || len(c.Cmd) != 3 || c.Labels["org.opencontainers.image.version"] != "1.2.3" {
		t.Errorf("the image says %+v", c)
	}
	return image
}

// checkReferrers checks what a registry lists beside an image.
func checkReferrers(t *testing.T, tag string, image v1.Image, s source) {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	of, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := remote.Referrers(of.Repository.Digest(digest.String()), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := listed.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{}
	for _, d := range manifest.Manifests {
		referrer, err := remote.Image(of.Repository.Digest(d.Digest.String()), remote.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		layers, err := referrer.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers: %v", len(layers), err)
		}
		body, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		texts[d.ArtifactType] = text
	}
	if len(manifest.Manifests) != 2 || len(texts) != 2 {
		t.Fatalf("what refers to the image: %+v", manifest.Manifests)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(texts[string(sbomType)]), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	for _, want := range append(modules(t), "pkg:npm/preact@11.2.0", "pkg:npm/%40tanstack/virtual-core@3.19.11") {
		if !slices.ContainsFunc(*bom.Components, func(c cyclonedx.Component) bool {
			return c.PackageURL == want || strings.HasPrefix(c.PackageURL, want+"?")
		}) {
			t.Errorf("%s is inside, and is not said to be", want)
		}
	}
	if bom.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("it is said to be %+v", bom.Metadata.Component)
	}
	var made statement
	if err := json.Unmarshal(texts[string(provenanceType)], &made); err != nil {
		t.Fatal(err)
	}
	if made.Subject[0].Digest["sha256"] != digest.Hex || made.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != s.revision || made.Predicate.RunDetails.Builder.ID != s.builder {
		t.Errorf("it is said to be made so: %+v", made)
	}
}

// modules are those of which packages are in the gateway's binary, as package URLs: what the linker is given, and not what the
// binary says of itself.
func modules(t *testing.T) (all []string) {
	t.Helper()
	list := exec.Command("go", "list", "-C", "..", "-deps", "-f", "{{with .Module}}{{if not .Main}}pkg:golang/{{.Path}}@{{.Version}}{{end}}{{end}}", "./cmd/gateway")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(out)) {
		if !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %q", all)
	}
	return all
}

// unpack has an image's layers unpacked by somebody else's tool, and returns where its files are.
func unpack(t *testing.T, image v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	to, err := layout.Write(dir+"/pulled", empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.AppendImage(image, layout.WithAnnotations(map[string]string{refName: "it"})); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "tool", "umoci", "unpack", "--rootless", "--image", dir+"/pulled:it", dir+"/bundle").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir + "/bundle/rootfs"
}

// serves checks that what is unpacked is all that the gateway needs, and that it serves.
func serves(t *testing.T, root, version string) {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && path != root && (info.Mode().Perm()&0o022 != 0 || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSymlink) != 0) {
			t.Errorf("%s is %s", path, info.Mode())
		}
		if !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/etc/group", "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt", "/gateway"}; !slices.Equal(names, want) {
		t.Errorf("it holds %q", names)
	}
	trusted, err := os.ReadFile(root + "/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		t.Fatal(err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(trusted) || bytes.Count(trusted, []byte("BEGIN CERTIFICATE")) < 80 {
		t.Errorf("%d authorities are trusted", bytes.Count(trusted, []byte("BEGIN CERTIFICATE")))
	}
	program, err := elf.Open(root + "/gateway")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the gateway needs a dynamic linker, which is not in the image")
		}
	}
	_ = program.Close()
	out, err := exec.Command(root+"/gateway", "version").Output()
	if err != nil || !strings.Contains(string(out), version) {
		t.Errorf("it says that it is %q: %v", out, err)
	}

	dir := t.TempDir()
	public, ops := free(t), free(t)
	write(t, dir+"/kubeconfig", `{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"a","user":{}}]}`)
	write(t, dir+"/gateway.yaml", "listen: "+public+"\nopsListen: "+ops+"\nclusters: [{name: default, kubeconfig: "+dir+"/kubeconfig}]\nhistory: {database: none}\n")
	var said bytes.Buffer
	serve := exec.Command(root+"/gateway", "serve", "--config", dir+"/gateway.yaml")
	serve.Stdout, serve.Stderr, serve.Env, serve.Dir = &said, &said, []string{"PATH=/"}, "/"
	serve.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		if err := serve.Wait(); err != nil {
			t.Errorf("it ended with %v:\n%s", err, &said)
		}
	}()
	if body := get(t, "http://"+ops+"/livez"); body == "" {
		t.Error("it does not live")
	}
	if body := get(t, "http://"+public+"/"); !strings.Contains(body, "<html") {
		t.Errorf("the portal is %q", body)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// get is what is answered with 200, once it is.
func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := error(nil)
	for ctx.Err() == nil {
		answer, err := http.Get(url)
		if err == nil {
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err == nil && answer.StatusCode == http.StatusOK {
				return string(body)
			}
		}
		last = err
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s is not answered: %v", url, last)
	return ""
}

// What cannot become an image is refused in words.
func TestWhatIsNoImageIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/packages.json", "[]")
	write(t, dir+"/text", "#!/bin/sh\n")
	made := []string{"image", "-version", "1.2.3", "-revision", "abc", "-created", "1", "-packages", dir + "/packages.json", "-out", dir + "/out"}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no command":             {nil, "image, push or tag"},
		"no binary":              {made, "at least one"},
		"no platform":            {append(slices.Clone(made), dir+"/text"), "is not OS/ARCHITECTURE=BINARY"},
		"no such file":           {append(slices.Clone(made), "linux/amd64="+dir+"/none"), "no such file"},
		"no program":             {append(slices.Clone(made), "linux/amd64="+dir+"/text"), dir + "/text"},
		"no packages":            {append(slices.Clone(made), "-packages"), "needs an argument"},
		"nothing to push":        {[]string{"push", dir, "127.0.0.1:1/a"}, "index.json"},
		"a registry of no name":  {[]string{"push", dir}, "are needed"},
		"a tag of a tag":         {[]string{"tag", "127.0.0.1:1/a:b", "c"}, "127.0.0.1:1/a:b"},
		"a registry that is off": {[]string{"push", layoutOf(t), "127.0.0.1:1/a"}, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), test.args); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, and not %q", err, test.want)
			}
		})
	}
}

// layoutOf is an image of a small program: of this test.
func layoutOf(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := source{version: "1", revision: "a", created: time.Unix(1, 0), binaries: []binary{{v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, self}}}
	dir := t.TempDir() + "/image"
	if _, err := s.write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A release that nobody could tell from another one, or of which nothing is told, is refused before anything is built.
func TestAReleaseThatCannotBeIsRefused(t *testing.T) {
	for version, want := range map[string]string{
		"": "is no version", "1.4": "is no version", "v1.4.0": "is no version", "01.4.0": "is no version", "1.4.0+5": "is no version", "1.4.0 -x": "is no version",
		"987.6.5": "", "1.0.0;touch ran": "is no version", "$(touch ran)": "is no version",
	} {
		out, err := exec.Command("../scripts/release.sh", version).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || !strings.HasPrefix(string(out), "release: ") {
			t.Errorf("%q: %v, %s", version, err, out)
		}
		// What names a tag is not run.
		if out, err := exec.Command("make", "-C", "..", "--no-print-directory", "release", "VERSION="+strings.ReplaceAll(version, "$", "$$")).CombinedOutput(); err == nil {
			t.Errorf("%q: %s", version, out)
		}
	}
	if _, err := os.Stat("../ran"); err == nil {
		t.Error("a version was run as a command")
		_ = os.Remove("../ran")
	}
}
