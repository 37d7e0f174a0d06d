package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mirror has what a control plane's projects publish, and their checksums; tamper changes what it has.
func mirror(t *testing.T, tamper func(files map[string][]byte)) string {
	t.Helper()
	version := func(module string) string {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	program := []byte("#!/bin/sh\necho published\n")
	files := map[string][]byte{}
	sum := func(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		at := "/release/" + version("k8s.io/kubernetes") + "/bin/linux/amd64/" + name
		files[at], files[at+".sha256"] = program, []byte(sum(program)) // without a line end, as it is
	}
	etcd := version("go.etcd.io/etcd/server/v3")
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	packed := tar.NewWriter(compressed)
	folder := "etcd-" + etcd + "-linux-amd64"
	for _, name := range []string{"README.md", "etcd"} {
		if err := packed.WriteHeader(&tar.Header{Name: folder + "/" + name, Mode: 0o755, Size: int64(len(program))}); err != nil {
			t.Fatal(err)
		}
		_, _ = packed.Write(program)
	}
	if packed.Close() != nil || compressed.Close() != nil {
		t.Fatal("etcd was not packed")
	}
	at := "/etcd-io/etcd/releases/download/" + etcd
	files[at+"/"+folder+".tar.gz"] = archive.Bytes()
	files[at+"/SHA256SUMS"] = fmt.Appendf(nil, "%s  etcd-%s-darwin-arm64.zip\n%s  %s.tar.gz\n", sum(program), etcd, sum(archive.Bytes()), folder)
	tamper(files)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, there := files[r.URL.Path]
		if !there {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A published binary is used if it is what its checksum says and runs here; else what there is not is built. An attacker's, or one
// that was broken off, never is.
func TestPublishedBinariesAreUsedIfTheyAreWhatTheySayTheyAre(t *testing.T) {
	if testing.Short() {
		t.Skip("it asks go for versions")
	}
	nothing := func(map[string][]byte) {}
	for name, test := range map[string]struct {
		from      func(t *testing.T) string
		published int // of six; kwok is always built
		says      string
	}{
		"a mirror": {func(t *testing.T) string { return mirror(t, nothing) }, 5, "published, had in"},
		"a mirror of others": {func(t *testing.T) string {
			return mirror(t, func(files map[string][]byte) {
				for path := range files {
					if strings.HasSuffix(path, "/kube-scheduler") {
						files[path] = []byte("#!/bin/sh\necho published, and tampered with\n")
					}
				}
			})
		}, 2, "is not what its checksum says"},
		"a mirror of what does not run": {func(t *testing.T) string {
			return mirror(t, func(files map[string][]byte) {
				for path, text := range files {
					if bytes.HasPrefix(text, []byte("#!")) {
						files[path] = []byte("#!/bin/sh\nexit 1\n")
						files[path+".sha256"] = fmt.Appendf(nil, "%x\n", sha256.Sum256(files[path]))
					}
				}
			})
		}, 0, "built in"},
		"an empty mirror":    {func(t *testing.T) string { return mirror(t, func(files map[string][]byte) { clear(files) }) }, 0, "as far as they cannot be had"},
		"nobody there":       {func(*testing.T) string { return "http://127.0.0.1:1" }, 0, "built in"},
		"no address":         {func(*testing.T) string { return "none" }, 0, "built in"},
		"a file, and no URL": {func(t *testing.T) string { return "file://" + t.TempDir() }, 0, "built in"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			real, err := exec.LookPath("go")
			if err != nil {
				t.Fatal(err)
			}
			// What is built is a program that says so: Kubernetes takes ten minutes.
			stub := "#!/bin/bash\n[ \"$1\" = build ] || exec " + real + " \"$@\"\nwhile [ \"$1\" != -o ]; do shift; done\nprintf '#!/bin/sh\\necho built\\n' >\"$2\" && chmod +x \"$2\"\n"
			if err := os.MkdirAll(dir+"/path", 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+"/path/go", []byte(stub), 0o700); err != nil {
				t.Fatal(err)
			}
			build := exec.Command("./build.sh", dir+"/bin/controlplane")
			build.Env = append(os.Environ(), "PATH="+dir+"/path:"+os.Getenv("PATH"), "XDG_CACHE_HOME="+dir+"/cache", "KUBECAST_BINARIES="+test.from(t), "GOOS=linux", "GOARCH=amd64")
			build.WaitDelay = time.Minute
			out, err := build.CombinedOutput()
			if err != nil || !strings.Contains(string(out), test.says) {
				t.Fatalf("%v, %s", err, out)
			}
			count := map[string]int{}
			for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"} {
				text, err := exec.Command(dir + "/bin/controlplane/" + name).Output()
				if err != nil {
					t.Fatal(err)
				}
				count[strings.TrimSpace(string(text))]++
			}
			if count["published"] != test.published || count["built"] != 6-test.published {
				t.Errorf("%v, and not %d that are published:\n%s", count, test.published, out)
			}
			if left, _ := filepath.Glob(dir + "/cache/kubecast/controlplane/*/*.*"); len(left) > 0 {
				t.Errorf("%q are left", left)
			}
		})
	}
}
