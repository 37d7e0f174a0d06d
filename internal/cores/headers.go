package cores

// Headers that gateways send each other. Package cluster, which gives these names to others, says what they mean.
const (
	HistoryHeader = "Kubecast-History"
	RelistHeader  = "Kubecast-Relist"
	RelistEnds    = "ends"

	FreshnessHeader = "Kubecast-Freshness"
	FreshnessTold   = "told"

	// The types of the events of such a watch that say so.
	Stale = "STALE"
	Live  = "LIVE"
)
