package main

import (
	"context"
	"io"

	"k8s.io/client-go/kubernetes"
)

const gpu = "nvidia.com/gpu"

type submitter struct{}

func newSubmitter(kubernetes.Interface, float64, io.Writer) *submitter { return &submitter{} }

func (s *submitter) run(ctx context.Context) { <-ctx.Done() }
