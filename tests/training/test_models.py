import pytest
import torch
import torchvision

from probnb.training.models import ResNet18


def test_full_width_is_torchvisions_resnet18():
    ours, theirs = ResNet18(), torchvision.models.resnet18(num_classes=2)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))


@pytest.mark.parametrize("size", [32, 48])
def test_small_stem_keeps_resolution(size):
    net = ResNet18(8, "small", in_channels=4, num_classes=3)
    stage = net.layer1(net.maxpool(net.conv1(torch.zeros(2, 4, size, size))))
    assert stage.shape == (2, 8, size // 2, size // 2)
    assert net(torch.zeros(2, 4, size, size)).shape == (2, 3)


@pytest.mark.parametrize("options", [{"width": 0}, {"stem": "tiny"}])
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ResNet18(**options)
