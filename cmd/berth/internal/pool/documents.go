package pool

import (
	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
)

// Documents are what the commands of this package alone print with --json, by command.
func Documents() map[string]any {
	return map[string]any{
		"pool show RESOURCE": app.Named[resourceDocument]{}, "pool next": app.Named[inspect.Page[allocator.ResourceInfo]]{},
		"pool add": app.Named[allocator.Change]{}, "pool remove": app.Named[allocator.Change]{}, "pool replace": app.Named[allocator.Change]{},
		"pool rest": app.Named[allocator.ResourceInfo]{}, "pool set": app.Named[setDocument]{}, "pool inspect": app.Named[allocator.Inspection]{},
		"pool check": app.Named[healthDocument]{}, "pool binding ls": app.Named[inspect.Page[berth.Binding]]{},
		"pool binding set": app.Named[berth.Binding]{}, "pool binding remove": app.Named[unboundDocument]{},
	}
}
