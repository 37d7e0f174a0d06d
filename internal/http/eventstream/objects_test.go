package eventstream_test

import (
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/objectstream/objecttest"
)

func init() { eventstream.ObjectParsers = objecttest.Parsers }
