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
	head  string // with which an object of most kinds begins, once a list has begun
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

// Members are those of an object of a plain list, behind its opening brace: without the names of
// its kind, as API servers write the items of lists, unless they stand among the others, as in
// custom resources.
func (p *Printer) Members(o *cluster.Object) string {
	if members, ok := strings.CutPrefix(o.JSON(), p.head); ok {
		return members
	}
	return o.JSON()[1:]
}

// Item renders one object of a list. The result is valid until the next call.
func (p *Printer) Item(o *cluster.Object) []byte {
	p.buf = p.buf[:0]
	switch {
	case p.table != nil:
		p.buf = p.table.AppendRow(p.buf, o, p.rows)
	case p.view.Form.IsMetadata():
		p.buf = table.AppendMetadata(p.buf, o, p.view.Form.MetaVersion())
		if p.view.Fields != nil {
			p.buf = p.view.Fields.append(nil, source{string(p.buf), p.view.Fields.source(o).status})
		}
	case p.view.Fields != nil:
		p.buf = p.view.Fields.append(p.buf, p.view.Fields.source(o))
	default:
		p.buf = append(p.buf, o.JSON()...)
	}
	return p.buf
}

// Object renders one object as a whole answer, but for the end of its line.
func (p *Printer) Object(o *cluster.Object) string {
	switch {
	case p.IsPlain():
		return o.JSON()
	case p.table != nil:
		meta := "{}"
		if version := o.Path("metadata.resourceVersion"); version.Exists() { // what is measured has none
			meta = `{"resourceVersion":` + version.Raw + `}`
		}
		return string(p.begin([]byte(meta), true)) + string(p.Item(o)) + "]}"
	}
	return string(p.Item(o))
}

// List renders what comes before the first item of a list, and what comes after the last one.
// Without an item, some forms have null for them, as at the API server.
func (p *Printer) List(meta []byte, form cluster.ListForm, items int) (begin, end []byte) {
	p.head = p.kind.Head()
	kind := form.Kind
	if kind == "" {
		kind = p.kind.Kind + "List"
	}
	switch {
	case items == 0 && (p.view.Form.IsMetadata() || p.table != nil && p.table.IsPlain()):
		begin = p.begin(meta, true)
		return append(begin[:len(begin)-1], "null"...), []byte("}\n")
	case p.view.Form != reply.FormJSON:
		return p.begin(meta, true), []byte("]}\n")
	case form.Untyped: // members by their names
		return fmt.Appendf(nil, `{"apiVersion":%q,"items":[`, p.kind.APIVersion()), fmt.Appendf(nil, `],"kind":%q,"metadata":%s}`+"\n", kind, meta)
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, p.kind.APIVersion(), meta), []byte("]}\n")
}

// begin renders what comes before the first item of a table, or of a list of metadata. Columns says
// whether a table includes its column definitions.
func (p *Printer) begin(meta []byte, columns bool) []byte {
	kind, items := "PartialObjectMetadataList", "items"
	if p.table != nil {
		kind, items = "Table", "rows"
	}
	begin := append([]byte(`{"kind":"`+kind+`","apiVersion":"meta.k8s.io/`+p.view.Form.MetaVersion()+`","metadata":`), meta...)
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
	return append(append(p.begin(meta, columns), p.Item(o)...), "]}"...)
}

// Bookmark renders the object of a bookmark event, which has only metadata. Columns is as in Event.
// In a table, that object has a row like any other.
func (p *Printer) Bookmark(meta []byte, columns bool) []byte {
	if p.table == nil {
		return p.marked(meta, p.view.Form.IsMetadata())
	}
	rows := p.rows
	rows.Now = time.Now()
	if rows.Include == metav1.IncludeNone && gjson.GetBytes(meta, "annotations").Exists() {
		rows.Include = metav1.IncludeMetadata // without it, nobody would know the end of the state
	}
	version := fmt.Appendf(nil, `{"resourceVersion":%s}`, gjson.GetBytes(meta, "resourceVersion").Raw)
	return append(p.table.AppendRow(p.begin(version, columns), cluster.NewBookmark(string(p.marked(meta, false))), rows), "]}"...)
}

// marked is the object of a bookmark, or its metadata.
func (p *Printer) marked(meta []byte, metadata bool) []byte {
	kind, apiVersion := p.kind.Kind, p.kind.APIVersion()
	if metadata {
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/"+p.view.Form.MetaVersion()
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s}`, kind, apiVersion, meta)
}
