module github.com/berth-go/berth/contrib/gocron

go 1.26.0
