// Package forecast says when the jobs that wait in a queue will start: an interval, and how sure it is.
//
// It plays the queue forward many times. What runs goes on for as long as jobs of its class ran that had run for so
// long; what waits starts in the queue's order, once there is room. What that leaves out, as jobs that come later and
// pass, is made good by comparing what was said with what came: the interval is as wide as it would have had to be
// lately to hold as often as it says. So it is right about its own errors, and wide where nothing can be known.
//
// What it promises: where there is too little to go by, it says nothing.
//
// What it refuses: to know clusters, quotas or databases. It is told what a queue has, in one unit, and in which order
// its jobs wait.
package forecast
