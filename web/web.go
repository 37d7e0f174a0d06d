// Package web carries the browser's half of Kubecast: the SDK and the portal, written in TypeScript.
// For Go it is one thing, the portal's build output as a file system inside the binary. It builds
// without that output, so that nobody who works on the server needs Node; serving the files, and
// saying at / how to build them when they are missing, is the server's affair.
package web

import (
	"embed"
	"io/fs"
)

// all: because the placeholder that keeps the folder in git begins with a dot; without it an
// unbuilt portal would be a compile error.
//
//go:embed all:portal/dist
var dist embed.FS

// Portal returns the portal's files, rooted at index.html's folder, and whether it was built into
// this binary. Everything under assets/ has a content hash in its name and may be cached for ever;
// index.html may not. The portal routes by query and fragment only, so that a path which is not a
// file needs no fallback. The file system is never nil.
func Portal() (fs.FS, bool) {
	return portal(dist)
}

func portal(embedded fs.FS) (fs.FS, bool) {
	files, err := fs.Sub(embedded, "portal/dist")
	if err != nil {
		panic(err) // only a malformed constant path fails here
	}
	info, err := fs.Stat(files, "index.html")
	return files, err == nil && info.Mode().IsRegular()
}
