package http

import (
	"context"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/table"
)

// printer writes objects in the form that a client wants.
type printer struct {
	kind  cluster.Kind
	view  view
	table *table.Table // nil in all other forms
	rows  table.Options
	buf   []byte // of the object in work
}

func (s *Server) printer(ctx context.Context, t access.Target, kind cluster.Kind, v view) (*printer, error) {
	p := &printer{kind: kind, view: v}
	if v.form.IsTable() {
		kinds, err := s.access.Cluster(t.Cluster)
		if err != nil {
			return nil, err
		}
		p.table = table.For(ctx, kinds.Cluster(), kind)
		p.rows = table.Options{Include: v.include, Version: v.form.MetaVersion(), Now: time.Now()}
	}
	return p, nil
}

// isPlain reports whether objects are sent as they are kept.
func (p *printer) isPlain() bool { return p.view.form == reply.FormJSON && p.view.fields == nil }

// item is one object in a list. What it returns is valid until the next call.
func (p *printer) item(o *cluster.Object) []byte {
	p.buf = p.buf[:0]
	switch {
	case p.table != nil:
		p.buf = p.table.AppendRow(p.buf, o, p.rows)
	case p.view.form.IsMetadata():
		p.buf = table.AppendMetadata(p.buf, o, p.view.form.MetaVersion())
		if p.view.fields != nil {
			p.buf = p.view.fields.root.project(nil, gjson.ParseBytes(p.buf))
		}
	case p.view.fields != nil:
		p.buf = p.view.fields.root.project(p.buf, gjson.Parse(o.JSON()))
	default:
		p.buf = append(p.buf, o.JSON()...)
	}
	return p.buf
}

// object is one object as an answer of its own.
func (p *printer) object(o *cluster.Object) string {
	switch {
	case p.isPlain():
		return o.JSON()
	case p.table != nil:
		return string(p.begin([]byte(`{"resourceVersion":`+o.Path("metadata.resourceVersion").Raw+`}`), true)) + string(p.item(o)) + "]}"
	}
	return string(p.item(o))
}

// list writes a list with its metadata.
func (p *printer) list(out *listWriter, items []*cluster.Object, meta []byte) {
	begin := p.begin(meta, true)
	if p.isPlain() {
		size := len(begin) + max(len(items)-1, 0) + len("]}\n")
		for _, o := range items {
			size += len(o.JSON())
		}
		out.length(size)
	}
	out.bytes(begin)
	for i, o := range items {
		if i > 0 {
			out.text(",")
		}
		switch {
		case p.isPlain():
			out.text(o.JSON())
		case out.step(len(o.JSON())):
			out.bytes(p.item(o))
		default:
			return
		}
	}
	out.text("]}\n")
}

// begin is what stands before the first item of a list; columns says whether a table names them.
func (p *printer) begin(meta []byte, columns bool) []byte {
	kind, apiVersion, items := p.kind.Kind+"List", p.kind.APIVersion(), "items"
	switch {
	case p.table != nil:
		kind, apiVersion, items = "Table", "meta.k8s.io/"+p.view.form.MetaVersion(), "rows"
	case p.view.form.IsMetadata():
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/"+p.view.form.MetaVersion()
	}
	begin := append([]byte(`{"kind":"`+kind+`","apiVersion":"`+apiVersion+`","metadata":`), meta...)
	if p.table != nil {
		begin = append(begin, `,"columnDefinitions":`...)
		if columns {
			begin = p.table.AppendColumns(begin)
		} else {
			begin = append(begin, "[]"...)
		}
	}
	return append(begin, `,"`+items+`":[`...)
}
