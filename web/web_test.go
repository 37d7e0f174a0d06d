package web

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func TestUnbuiltPortalIsToldApartFromABuiltOne(t *testing.T) {
	for name, tc := range map[string]struct {
		files fstest.MapFS
		built bool
	}{
		"placeholder only":   {fstest.MapFS{"portal/dist/.gitkeep": {}}, false},
		"a build cut short":  {fstest.MapFS{"portal/dist/assets/index-abc.js": {}}, false},
		"index is no file":   {fstest.MapFS{"portal/dist/index.html/x": {}}, false},
		"built":              {fstest.MapFS{"portal/dist/index.html": {Data: []byte("<!doctype html>")}}, true},
		"index of elsewhere": {fstest.MapFS{"index.html": {}, "portal/dist/.gitkeep": {}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			files, built := portal(tc.files)
			if files == nil {
				t.Fatal("no file system")
			}
			if built != tc.built {
				t.Errorf("built = %v, want %v", built, tc.built)
			}
		})
	}
}

// Runs against whatever is embedded: the placeholder alone, or a real build, which must be whole and
// must fit the server's caching (hashed names) and its content security policy (nothing inline).
func TestEmbeddedPortalIsWholeOrAbsent(t *testing.T) {
	files, built := Portal()
	if !built {
		if _, err := fs.Stat(files, ".gitkeep"); err != nil {
			t.Fatalf("neither a build nor the placeholder: %v", err)
		}
		return
	}
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		t.Fatal(err)
	}
	refs := regexp.MustCompile(`<(?:script|link)[^>]*\s(?:src|href)="([^"]+)"`).FindAllStringSubmatch(string(index), -1)
	if len(refs) == 0 {
		t.Error("index.html refers to nothing")
	}
	for _, ref := range refs {
		path, ok := strings.CutPrefix(ref[1], "./")
		if !ok {
			t.Errorf("%q is not relative: the page may stand below any path", ref[1])
			continue
		}
		path, _, _ = strings.Cut(path, "?") // by its version browsers keep a file for ever
		if _, err := fs.Stat(files, path); err != nil {
			t.Errorf("index.html refers to %q: %v", ref[1], err)
		}
	}
	if inline := regexp.MustCompile(`(?s)<script[^>]*>[^<]|<style|\son[a-z]+=|\sstyle=`).Find(index); inline != nil {
		t.Errorf("index.html has inline code or style, which a strict content security policy refuses: %q", inline)
	}
	hashed := regexp.MustCompile(`-[A-Za-z0-9_-]{8,}\.[a-z0-9]+(\.br|\.gz)?$`)
	err = fs.WalkDir(files, "assets", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !hashed.MatchString(path) {
			t.Errorf("%s is cached for ever but has no content hash in its name", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
