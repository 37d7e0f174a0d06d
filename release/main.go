// Command release builds the gateway's OCI image from its binaries, and pushes images. It needs no container engine,
// and reads nothing but its arguments and the Go modules of which it is made, so that the same binaries always make
// the same image.
//
//	release image -version V -revision COMMIT -created SECONDS -packages FILE -out DIR linux/amd64=PATH …
//	release push DIR REGISTRY/REPOSITORY
//	release tag REGISTRY/REPOSITORY@DIGEST TAG
//
// An image is an OCI layout (the OCI image specification, "Image Layout"): an index with an
// image for each platform. To each of these refer what it is made of (CycloneDX) and how it was made (in-toto, SLSA),
// as the OCI distribution specification's referrers, which registries list and cosign reads.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "image":
			return image(args[1:])
		case "push":
			return push(ctx, args[1:])
		case "tag":
			return tag(ctx, args[1:])
		}
	}
	return errors.New("the command is image, push or tag")
}

// source is what an image is made from.
type source struct {
	version  string
	revision string // the commit
	created  time.Time
	builder  string    // who builds it, as a URI
	packages []Package // that the portal inside the binaries is bundled from
	binaries []binary
}

type binary struct {
	platform v1.Platform
	path     string
}

// Package is one of npm's, as `go run ./scripts/notices -packages` prints it.
type Package struct{ Name, Version string }

func image(args []string) error {
	var s source
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&s.version, "version", "", "the release's `version`, such as 1.4.0")
	flags.StringVar(&s.revision, "revision", "", "the `commit` that it is built from")
	flags.StringVar(&s.builder, "builder", "https://github.com/kubecast/kubecast/blob/main/scripts/release.sh", "who builds it, as a `URI`")
	created := flags.Int64("created", 0, "when it was made, in `seconds` since 1970: the commit's time, so that the image stays the same")
	packages := flags.String("packages", "", "a `file` with the npm packages that are inside")
	out := flags.String("out", "", "the `directory` to write; it is written anew")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.version == "" || s.revision == "" || *created <= 0 || *packages == "" || *out == "" || flags.NArg() == 0 {
		return errors.New("-version, -revision, -created, -packages, -out and at least one OS/ARCHITECTURE=BINARY are needed")
	}
	s.created = time.Unix(*created, 0).UTC()
	text, err := os.ReadFile(*packages)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &s.packages); err != nil {
		return fmt.Errorf("%s: %w", *packages, err)
	}
	for _, arg := range flags.Args() {
		name, path, ok := strings.Cut(arg, "=")
		platform, err := v1.ParsePlatform(name)
		if !ok || err != nil || platform.Architecture == "" {
			return fmt.Errorf("%q is not OS/ARCHITECTURE=BINARY", arg)
		}
		s.binaries = append(s.binaries, binary{*platform, path})
	}
	digest, err := s.write(*out)
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}
