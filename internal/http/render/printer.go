package render

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/table"
)

// Printer writes objects in the form that a client wants.
type Printer struct {
	kind  cluster.Kind
	view  View
	table *table.Table // nil in all other forms
	rows  table.Options
	buf   []byte // the object that is being written
}

// NewPrinter returns a printer for the objects of a kind.
func NewPrinter(ctx context.Context, c *cluster.Cluster, kind cluster.Kind, v View) *Printer {
	p := &Printer{kind: kind, view: v}
	if v.Form.IsTable() {
		p.table = table.For(ctx, c, kind)
		p.rows = table.Options{Include: v.Include, Version: v.Form.MetaVersion(), Now: time.Now()}
	}
	return p
}

// IsPlain reports whether objects are sent as they are cached.
func (p *Printer) IsPlain() bool { return p.view.Form == reply.FormJSON && p.view.Fields == nil }

// Item renders one object of a list. The result is valid until the next call.
func (p *Printer) Item(o *cluster.Object) []byte {
	p.buf = p.buf[:0]
	switch {
	case p.table != nil:
		p.buf = p.table.AppendRow(p.buf, o, p.rows)
	case p.view.Form.IsMetadata():
		p.buf = table.AppendMetadata(p.buf, o, p.view.Form.MetaVersion())
		if p.view.Fields != nil {
			p.buf = p.view.Fields.root.project(nil, gjson.ParseBytes(p.buf))
		}
	case p.view.Fields != nil:
		p.buf = p.view.Fields.root.project(p.buf, gjson.Parse(o.JSON()))
	default:
		p.buf = append(p.buf, o.JSON()...)
	}
	return p.buf
}

// Object renders one object as a whole answer.
func (p *Printer) Object(o *cluster.Object) string {
	switch {
	case p.IsPlain():
		return o.JSON()
	case p.table != nil:
		meta := "{}"
		if version := o.Path("metadata.resourceVersion"); version.Exists() { // what is measured has none
			meta = `{"resourceVersion":` + version.Raw + `}`
		}
		return string(p.Begin([]byte(meta), true)) + string(p.Item(o)) + "]}"
	}
	return string(p.Item(o))
}

// Begin renders what comes before the first item of a list. Columns says whether a table includes its column
// definitions.
func (p *Printer) Begin(meta []byte, columns bool) []byte {
	kind, apiVersion, items := p.kind.Kind+"List", p.kind.APIVersion(), "items"
	switch {
	case p.table != nil:
		kind, apiVersion, items = "Table", "meta.k8s.io/"+p.view.Form.MetaVersion(), "rows"
	case p.view.Form.IsMetadata():
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/"+p.view.Form.MetaVersion()
	}
	begin := append([]byte(`{"kind":"`+kind+`","apiVersion":"`+apiVersion+`","metadata":`), meta...)
	if p.table != nil {
		begin = append(begin, `,"columnDefinitions":`...)
		if columns {
			begin = p.table.AppendColumns(begin)
		} else {
			begin = append(begin, "null"...)
		}
	}
	return append(begin, `,"`+items+`":[`...)
}

// Event renders the object of a watch event. Columns says whether a table includes its column definitions. The result
// is valid until the next call.
func (p *Printer) Event(o *cluster.Object, columns bool) []byte {
	if p.table == nil {
		return p.Item(o)
	}
	p.rows.Now = time.Now()
	meta := fmt.Appendf(nil, `{"resourceVersion":%q}`, o.GetResourceVersion())
	return append(append(p.Begin(meta, columns), p.Item(o)...), "]}"...)
}

// Bookmark renders the object of a bookmark event, which has only metadata.
func (p *Printer) Bookmark(meta []byte) []byte {
	if p.table == nil {
		return p.marked(meta, p.view.Form.IsMetadata())
	}
	// As at the API server, what is said of the bookmark stands in a row, whose object has no name.
	object := []byte("null")
	if p.view.Include != metav1.IncludeNone {
		object = p.marked(meta, p.view.Include != metav1.IncludeObject)
	}
	version := fmt.Appendf(nil, `{"resourceVersion":%s}`, gjson.GetBytes(meta, "resourceVersion").Raw)
	cells := strings.Repeat(`,""`, len(p.table.Columns()))[1:]
	return fmt.Appendf(p.Begin(version, false), `{"cells":[%s],"object":%s}]}`, cells, object)
}

// marked is the object of a bookmark, or its metadata.
func (p *Printer) marked(meta []byte, metadata bool) []byte {
	kind, apiVersion := p.kind.Kind, p.kind.APIVersion()
	if metadata {
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/"+p.view.Form.MetaVersion()
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s}`, kind, apiVersion, meta)
}
