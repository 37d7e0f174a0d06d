package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/kubecast/kubecast/internal/app"
)

func explain(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags("explain", "PATH says which binding or policy permits what of a path to a user, or what is missing. It connects to the cluster with the gateway's identity, and changes nothing", out)
	var from configured
	from.addTo(flags)
	var q app.Question
	flags.StringVar(&q.User, "user", "", "`name` of the user, as bindings have it")
	groups := flags.String("groups", "", "the user's `groups`, with commas between")
	claims := flags.String("claims", "", "the claims of the user's token, as `JSON`, for policies")
	flags.StringVar(&q.Cluster, "cluster", "", "`name` of the cluster; the one that the path names, or the default one")
	if err := flags.parse(args, 1); err != nil {
		return err
	}
	if q.Path = flags.Arg(0); q.User == "" || !strings.HasPrefix(q.Path, "/") {
		return errors.New("explain: --user NAME and a path such as /apis/batch/v1/namespaces/team-a/jobs are required")
	}
	if *groups != "" {
		q.Groups = strings.Split(*groups, ",")
	}
	if *claims != "" {
		if err := json.Unmarshal([]byte(*claims), &q.Claims); err != nil {
			return fmt.Errorf("explain: --claims: %w", err)
		}
	}
	cfg, err := from.load()
	if err != nil {
		return err
	}
	return app.Explain(ctx, app.Options{Config: cfg, Version: version}, q, out)
}
