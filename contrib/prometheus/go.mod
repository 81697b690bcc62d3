module github.com/berth-go/berth/contrib/prometheus

go 1.26.0
