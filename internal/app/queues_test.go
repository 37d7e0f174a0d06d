package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// signals are the channels of empty values with room, by file, that are no queue: each tells one
// goroutine that there is something to do.
var signals = map[string]string{
	"auth/rbac/confirmed.go": "a mirror has changed",
	"auth/remotekeys.go":     "keys are to be fetched",
	"auth/revocations.go":    "there is something to write, or the ConfigMap has become unreadable",
	"cache/catchup.go":       "somebody waits for a catch-up that is to be begun",
	"cache/reach.go":         "somebody waits for a version that the store has not reached",
	"cluster/breaker.go":     "a request was not answered",
	"jobs/logtail/keeper.go": "a log may be due",
	"http/podlog/guard.go":   "a permission may have changed",
	"logs/catchup.go":        "lines were taken",
	"jobs/inbox/inbox.go":    "a digest may be due",
	"stream/topic.go":        "readers are to be woken",
	"stream/wait.go":         "the channel itself",
}

// semaphores are the files that import one for which no two wait.
var semaphores = map[string]string{
	"shards/watch.go": "the bytes of one shard's events that wait within one watch, of which one goroutine reads more",
}

// A channel with room for so many, or a semaphore, serves those who wait in the order in which they
// came: whoever asks 16 at a time has all others wait. What users share is handed out by quotaOwner
// (budget.Queue).
func TestNoQueueIsWithoutAnOwner(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, "../"))
		if strings.HasPrefix(name, "budget/") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			if strings.Contains(i.Path.Value, "/semaphore\"") && semaphores[name] == "" {
				t.Errorf("%s imports a semaphore, which knows no quotaOwner", name)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isRoom(call) {
				if found[name] = true; signals[name] == "" {
					t.Errorf("%s: a channel that works as a queue without a quotaOwner", files.Position(call.Pos()))
				} else if size, ok := call.Args[1].(*ast.BasicLit); !ok || size.Value != "1" {
					t.Errorf("%s: what only tells that %s has room for one", files.Position(call.Pos()), signals[name])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range signals {
		if !found[name] {
			t.Errorf("%s has no such channel any more", name)
		}
	}
}

// isRoom reports whether a call makes a channel of empty values with room for some.
func isRoom(call *ast.CallExpr) bool {
	name, ok := call.Fun.(*ast.Ident)
	if !ok || name.Name != "make" || len(call.Args) != 2 {
		return false
	}
	channel, ok := call.Args[0].(*ast.ChanType)
	if !ok {
		return false
	}
	empty, ok := channel.Value.(*ast.StructType)
	return ok && len(empty.Fields.List) == 0
}
